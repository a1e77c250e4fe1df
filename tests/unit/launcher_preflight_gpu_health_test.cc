#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/cluster/gpus.h"
#include "launcher/cluster/nvidia_smi.h"
#include "launcher/preflight/gpu_health.h"

namespace ptrain::preflight {
namespace {

// Lines as nvidia-smi writes them.
TEST(GpuHealth, HealthyOnesAreNotSpokenOf) {
  EXPECT_EQ(gpu_error_in("0, 0, No\n1, 0, No\n"), "");
  EXPECT_EQ(gpu_error_in("0, [N/A], [N/A]\n"), "");
  EXPECT_EQ(gpu_error_in("0, 0, [N/A]\r\n"), "");
  EXPECT_EQ(gpu_error_in(""), "");
}

TEST(GpuHealth, SickOnesAreNamed) {
  EXPECT_EQ(gpu_error_in("0, 0, No\n1, 3, No\n2, 0, Yes\n"),
            "GPU 1 has had 3 uncorrected memory errors, GPU 2 waits for a reset to retire memory");
  EXPECT_EQ(gpu_error_in("0, [Unknown Error], [Unknown Error]\n"),
            "GPU 0 does not answer ([Unknown Error])");
  EXPECT_NE(gpu_error_in("Unable to determine the device handle for GPU0\n"), "");
}

TEST(GpuHealth, GpusThatShouldBeThereAreMissed) {
  EXPECT_EQ(missing_gpus({true, 4, 2, 8}), "");
  EXPECT_EQ(missing_gpus({true, 1, 2, 8}),
            "Slurm gives the job 2 GPUs here, and nvidia-smi lists 1");
  EXPECT_EQ(missing_gpus({false, 0, 2, 0}),
            "Slurm gives the job 2 GPUs here, and there is no nvidia-smi in PATH");
  EXPECT_EQ(missing_gpus({true, 0, 0, 8}), "8 NVIDIA GPUs are on the bus, and nvidia-smi lists 0");
  EXPECT_EQ(missing_gpus({false, 0, 0, 0}), "");
}

// A machine with four GPUs on its bus, and a program of ours for NVIDIA's.
class WithTool : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-smi-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
    const std::string source = std::getenv("PTRAIN_SOURCE_DIR");
    ::setenv("HWLOC_XMLFILE", (source + "/tests/fixtures/cluster/four_nics.xml").c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("HWLOC_XMLFILE");
    std::filesystem::remove_all(folder_);
  }
  void write(const std::string& script) {
    const std::string tool = folder_ + "/nvidia-smi";
    std::ofstream(tool) << "#!/bin/sh\n" << script << '\n';
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  }
  // What a node reports whose nvidia-smi is this script.
  NodeReport look(const std::string& script) {
    write(script);
    NodeReport report;
    look_at_gpus(report);
    return report;
  }
  std::string folder_, path_;
};

TEST_F(WithTool, OneThatFailsIsQuoted) {
  const auto report = look("echo 'NVIDIA-SMI has failed because of the driver.'; exit 9");
  EXPECT_EQ(report.num_gpus, 0);
  EXPECT_EQ(report.gpu_tool_error,
            "nvidia-smi fails with code 9: NVIDIA-SMI has failed because of the driver.");
  EXPECT_EQ(report.gpu_error, "");
}

TEST_F(WithTool, OneThatPrintsRubbishIsQuoted) {
  const auto report = look("echo '<html>'");
  EXPECT_EQ(report.num_gpus, 0);
  EXPECT_EQ(report.gpu_tool_error, "nvidia-smi says: <html>");
}

TEST_F(WithTool, OneThatHangsIsKilled) {
  write("exec sleep 1000");
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = cluster::ask_nvidia_smi(cluster::kGpusQuery, std::chrono::seconds(1));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ASSERT_TRUE(answer);
  const auto survey = cluster::survey_of(*answer);
  EXPECT_TRUE(survey.gpus.empty());
  EXPECT_EQ(survey.complaint.find("nvidia-smi: no answer after 1 s: "), 0u) << survey.complaint;
}

TEST_F(WithTool, NoneWhereTheBusHasSomeIsTold) {
  EXPECT_EQ(look("echo 'No devices were found'; exit 6").gpu_tool_error,
            "4 NVIDIA GPUs are on the bus, and nvidia-smi lists 0");
}

// A line beside the GPUs, as the tool writes of one that is lost.
TEST_F(WithTool, WhatItSaysBesideGpusIsQuoted) {
  const auto report = look(
      "case \"$*\" in *uuid*) echo '0, 00000000:11:00.0, GPU-a, 81559';\n"
      "echo '1, 00000000:21:00.0, [Unknown Error], [Unknown Error]';;\n"
      "*) echo '0, 0, No'; echo '1, [Unknown Error], [Unknown Error]';; esac");
  EXPECT_EQ(report.num_gpus, 1);
  EXPECT_EQ(report.gpu_tool_error,
            "nvidia-smi says: 1, 00000000:21:00.0, [Unknown Error], [Unknown Error]");
  EXPECT_EQ(report.gpu_error, "GPU 1 does not answer ([Unknown Error])");
}

TEST_F(WithTool, HealthyGpusGiveNoWords) {
  const auto report = look(
      "case \"$*\" in *uuid*) echo '0, 00000000:11:00.0, GPU-a, 81559';; *) echo '0, 0, No';; "
      "esac");
  EXPECT_EQ(report.num_gpus, 1);
  EXPECT_EQ(report.gpu_tool_error + report.gpu_error, "");
}

}  // namespace
}  // namespace ptrain::preflight
