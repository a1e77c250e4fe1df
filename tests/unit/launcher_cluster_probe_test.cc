#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/cluster/figures_json.h"
#include "launcher/cluster/probe.h"

namespace ptrain::cluster {
namespace {

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest()
      : folder(std::filesystem::temp_directory_path() /
               ("probe-test-" + std::to_string(getpid()))) {}
  ~ProbeTest() override { std::filesystem::remove_all(folder); }

  // A runner that writes `text` and counts its calls.
  ProbeRunner writes(std::string text) {
    return [this, text](int num_ranks, const std::string& output) -> Status {
      ++calls;
      ranks = num_ranks;
      std::ofstream(output) << text;
      return {};
    };
  }
  static std::string good(double rate) {
    Figures figures = default_figures();
    figures.matmul_float32 = rate;
    return to_json(figures, 2).dump();
  }

  std::filesystem::path folder;
  ProbeKey key{"A processor", 2, "build-1"};
  std::vector<std::string> notes;
  int calls = 0;
  int ranks = 0;
};

TEST_F(ProbeTest, MeasuresOnceAndKeeps) {
  const auto first = probed_figures(folder, key, writes(good(7e10)), notes);
  EXPECT_EQ(first.matmul_float32, 7e10);
  EXPECT_FALSE(first.assumed);
  EXPECT_EQ(ranks, 2);
  const auto second = probed_figures(folder, key, writes(good(1e10)), notes);
  EXPECT_EQ(second.matmul_float32, 7e10);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(notes.empty());
}

TEST_F(ProbeTest, AnotherBuildProcessorOrCountMeasuresAgain) {
  probed_figures(folder, key, writes(good(7e10)), notes);
  probed_figures(folder, {"A processor", 2, "build-2"}, writes(good(1e10)), notes);
  probed_figures(folder, {"Another", 2, "build-1"}, writes(good(1e10)), notes);
  probed_figures(folder, {"A processor", 3, "build-1"}, writes(good(1e10)), notes);
  EXPECT_EQ(calls, 4);
}

TEST_F(ProbeTest, DamagedFilesAreMeasuredAgain) {
  for (const std::string damaged : {"", "{", "[]", "{\"version\": 1}", R"({"version": 2})"}) {
    std::filesystem::create_directories(folder);
    std::ofstream(probe_path(folder, key)) << damaged;
    EXPECT_EQ(probed_figures(folder, key, writes(good(7e10)), notes).matmul_float32, 7e10)
        << damaged;
  }
  EXPECT_EQ(calls, 5);
}

TEST_F(ProbeTest, WithoutAWayToMeasureDefaultsAndANote) {
  EXPECT_EQ(probed_figures(folder, key, nullptr, notes), default_figures());
  EXPECT_EQ(notes.size(), 1u);
  const ProbeRunner broken = [](int, const std::string&) -> Status {
    return fail(ExitCode::kEnvironment, "no engine here");
  };
  EXPECT_TRUE(probed_figures(folder, key, broken, notes).assumed);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[1].find("no engine here"), std::string::npos);
  EXPECT_TRUE(probed_figures(folder, key, writes("nonsense"), notes).assumed);
  EXPECT_FALSE(std::filesystem::exists(probe_path(folder, key)));
  EXPECT_TRUE(probed_figures("", key, writes(good(1)), notes).assumed);
}

TEST(FiguresJson, RefusesWhatIsNotAboveZero) {
  for (const char* pointer : {"/matmul_flops_per_s/float32", "/memory_bytes_per_s",
                              "/all_gather/latency_s", "/reduce_scatter/bytes_per_s"}) {
    auto json = to_json(default_figures(), 2);
    json[nlohmann::json::json_pointer(pointer)] = 0;
    const auto figures = figures_from_json(json);
    ASSERT_FALSE(figures);
    EXPECT_NE(figures.error().message.find(pointer), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::cluster
