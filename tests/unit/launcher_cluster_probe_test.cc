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
    auto json = to_json(figures);
    json["version"] = 4;
    json["num_ranks"] = 2;
    return json.dump();
  }

  std::filesystem::path folder;
  ProbeKey key{"A processor", 2, "build-1"};
  std::vector<std::string> notes;
  int calls = 0;
  int ranks = 0;
};

TEST_F(ProbeTest, MeasuresOnceAndKeeps) {
  const auto first = probed_figures({folder, key, writes(good(7e10))}, notes);
  EXPECT_EQ(first.matmul_float32, 7e10);
  EXPECT_FALSE(first.assumed);
  EXPECT_EQ(ranks, 2);
  const auto second = probed_figures({folder, key, writes(good(1e10))}, notes);
  EXPECT_EQ(second.matmul_float32, 7e10);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(notes.empty());
}

TEST_F(ProbeTest, MeasuresAgainWhenAsked) {
  probed_figures({folder, key, writes(good(7e10))}, notes);
  const auto again = probed_figures({folder, key, writes(good(1e10)), true}, notes);
  EXPECT_EQ(again.matmul_float32, 1e10);
  EXPECT_NE(again.source.find("measured on this machine at 20"), std::string::npos) << again.source;
  EXPECT_EQ(probed_figures({folder, key, nullptr}, notes).matmul_float32, 1e10);
  EXPECT_EQ(calls, 2);
}

TEST_F(ProbeTest, AnotherBuildProcessorOrCountMeasuresAgain) {
  probed_figures({folder, key, writes(good(7e10))}, notes);
  probed_figures({folder, {"A processor", 2, "build-2"}, writes(good(1e10))}, notes);
  probed_figures({folder, {"Another", 2, "build-1"}, writes(good(1e10))}, notes);
  probed_figures({folder, {"A processor", 3, "build-1"}, writes(good(1e10))}, notes);
  EXPECT_EQ(calls, 4);
}

TEST_F(ProbeTest, DamagedFilesAreMeasuredAgain) {
  for (const std::string damaged :
       {"", "{", "[]", "{\"version\": 1}", R"({"version": 4})", R"({"version": "4"})"}) {
    std::filesystem::create_directories(folder);
    std::ofstream(probe_path(folder, key)) << damaged;
    EXPECT_EQ(probed_figures({folder, key, writes(good(7e10))}, notes).matmul_float32, 7e10)
        << damaged;
  }
  EXPECT_EQ(calls, 6);
}

TEST_F(ProbeTest, WithoutAWayToMeasureDefaultsAndANote) {
  EXPECT_EQ(probed_figures({folder, key, nullptr}, notes), default_figures());
  EXPECT_EQ(notes.size(), 1u);
  const ProbeRunner broken = [](int, const std::string&) -> Status {
    return fail(ExitCode::kEnvironment, "no engine here");
  };
  EXPECT_TRUE(probed_figures({folder, key, broken}, notes).assumed);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[1].find("no engine here"), std::string::npos);
  EXPECT_TRUE(probed_figures({folder, key, writes("nonsense")}, notes).assumed);
  EXPECT_FALSE(std::filesystem::exists(probe_path(folder, key)));
  EXPECT_TRUE(probed_figures({"", key, writes(good(1))}, notes).assumed);
}

TEST(FiguresJson, RefusesWhatIsNotAboveZero) {
  for (const char* pointer :
       {"/matmul_flops_per_s/float32", "/memory_bytes_per_s", "/all_gather/latency_s",
        "/reduce_scatter/bytes_per_s", "/attention/backward/pair_s", "/matmul_shares/1/width",
        "/window/bytes_per_s"}) {
    auto json = to_json(default_figures());
    json[nlohmann::json::json_pointer(pointer)] = 0;
    const auto figures = figures_from_json(json);
    ASSERT_FALSE(figures);
    EXPECT_NE(figures.error().message.find(pointer), std::string::npos);
  }
}

TEST(FiguresJson, SurvivesTheRoundTrip) {
  Figures figures = default_figures();
  figures.attention.backward.pair_s = 3e-9;
  figures.attention_bfloat16.forward.block_s = 5e-6;
  figures.matmul_shares = {{100, 0.25, 0.75}};
  figures.matmul_bfloat16 = 3e11;
  figures.matmul_shares_bfloat16 = {{200, 0.5, 0.25}};
  figures.window.latency_s = 7e-6;
  figures.assumed = false;
  figures.source.clear();
  const auto again = figures_from_json(to_json(figures));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, figures);
}

TEST(FiguresJson, RefusesWhatItDoesNotKnowAndWidthsOutOfOrder) {
  auto json = to_json(default_figures());
  json["attention"]["colour"] = 1;
  EXPECT_TRUE(
      figures_from_json(json).error().message.starts_with("/attention/colour is not known"));
  json = to_json(default_figures());
  json["matmul_shares"][1]["width"] = 64;
  EXPECT_TRUE(figures_from_json(json).error().message.starts_with("/matmul_shares/1/width"));
  json = to_json(default_figures());
  json["attention"].erase("forward");
  EXPECT_TRUE(figures_from_json(json).error().message.starts_with("/attention/forward is missing"));
  EXPECT_FALSE(figures_from_json(nlohmann::json::array()));
}

}  // namespace
}  // namespace ptrain::cluster
