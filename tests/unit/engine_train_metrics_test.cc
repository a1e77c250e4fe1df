#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/engine_error.h"
#include "engine/train/metrics.h"

namespace ptrain::train {
namespace {

// A new folder, removed at the end.
class MetricsFile : public testing::Test {
 protected:
  MetricsFile() {
    std::string folder = testing::TempDir() + "ptrain-metrics-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    path_ = folder_ + "/metrics.jsonl";
  }
  ~MetricsFile() override { std::filesystem::remove_all(folder_); }

  void write_text(const std::string& text) const { std::ofstream(path_) << text; }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_, path_;
};

run::StepDone step(std::int64_t number) {
  run::StepDone done;
  done.step = number;
  done.shape = "short";
  done.loss = 5.5;
  done.grad_norm = 2;
  done.learning_rate = 1e-3;
  done.tokens = 100;
  done.tokens_total = 100 * number;
  done.step_s = 0.5;
  done.tokens_per_s = 200;
  done.mfu = 0.25;
  done.bytes_peak = 4096;
  return done;
}

TEST_F(MetricsFile, OneLineAStep) {
  Metrics(path_, 0, 2).write(step(1));
  EXPECT_EQ(text(), R"({"attempt":2,"step":1,"shape":"short","loss":5.5,"grad_norm":2.0,)"
                    R"("learning_rate":0.001,"tokens":100,"tokens_total":100,"step_s":0.5,)"
                    R"("tokens_per_s":200.0,"mfu":0.25,"bytes_peak":4096})"
                    "\n");
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u) << "the owner's alone";
}

TEST_F(MetricsFile, StepsAfterTheCheckpointAreCut) {
  {
    Metrics metrics(path_, 0, 1);
    for (const int number : {1, 2, 3, 4}) metrics.write(step(number));
  }
  Metrics(path_, 2, 2).write(step(3));
  std::vector<std::pair<int, int>> lines;  // attempt, step
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    lines.emplace_back(json["attempt"], json["step"]);
  }
  EXPECT_EQ(lines, (std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {2, 3}}));
}

// A limit on the size of files stands in for a full disk.
TEST_F(MetricsFile, AFullDiskKeepsTheLinesUntilThereIsRoom) {
  Metrics metrics(path_, 0, 1);
  EXPECT_FALSE(metrics.write(step(1)));
  const std::string one = text();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{one.size() + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto said = metrics.write(step(2));
  EXPECT_FALSE(metrics.write(step(3))) << "said once";
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("no room for " + path_), std::string::npos);
  EXPECT_EQ(text(), one) << "no part of a line";
  EXPECT_FALSE(metrics.write(step(4)));
  std::ifstream file(path_);
  int expected = 1;
  for (std::string line; std::getline(file, line); ++expected)
    EXPECT_EQ(nlohmann::json::parse(line)["step"], expected);
  EXPECT_EQ(expected, 5);
}

// A rank that is killed while it writes leaves a part of a line.
TEST_F(MetricsFile, ATornLastLineIsCut) {
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  for (const char* torn : {"{\"step\":3", "{\"step\":3}", "{", "\n", "3\n", "{\"loss\":1}\n"}) {
    write_text(whole + torn);
    Metrics(path_, 10, 1);
    EXPECT_EQ(text(), whole) << torn;
  }
}

TEST_F(MetricsFile, ALineThatCannotBeReadTakesNoOtherWithIt) {
  const std::string kept = "{\"step\":1}\nrubbish\n{\"step\":\"two\"}\n{}\n{\"step\":2}\n";
  write_text(kept + "rubbish\n{\"step\":3}\n");
  Metrics(path_, 2, 1);
  EXPECT_EQ(text(), kept);
}

TEST_F(MetricsFile, APipeIsRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(Metrics(path_, 0, 1), EngineError);
}

TEST_F(MetricsFile, AFolderThatIsGoneIsAnEnvironmentError) {
  try {
    Metrics metrics(folder_ + "/gone/metrics.jsonl", 0, 1);
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("gone/metrics.jsonl"), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::train
