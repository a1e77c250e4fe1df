#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "launcher/base/file.h"
#include "launcher/submit/job_file.h"
#include "launcher/submit/rank_map.h"
#include "launcher/submit/shared_folder.h"

namespace ptrain::submit {
namespace {

namespace fs = std::filesystem;

class JobFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(directory.root);
    fs::create_directories(directory.root);
    ASSERT_TRUE(publish_file(directory.recipe(), "name: a"));
    ASSERT_TRUE(publish_file(directory.plan(), "{}"));
  }
  void TearDown() override { fs::remove_all(directory.root); }

  run::Directory directory{fs::temp_directory_path() / "ptrain-job-file-test"};
};

TEST_F(JobFiles, RoundTrip) {
  JobFile file{"12", "/home/me/a b.yaml", "1", "2", "3", true, 4, "2"};
  const auto read = job_file_from_text(to_text(file));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, file);
  auto json = nlohmann::json::parse(to_text(file));
  json.erase("num_tasks");
  json.erase("task");
  EXPECT_EQ(job_file_from_text(json.dump()),
            (JobFile{"12", "/home/me/a b.yaml", "1", "2", "3", true}));
  EXPECT_FALSE(job_file_from_text("{}"));
  EXPECT_FALSE(job_file_from_text("{\"job\": 12}"));
}

TEST_F(JobFiles, OutputOfATaskIsNamedAfterIt) {
  JobFile file{"12", "", "", "", "", true};
  EXPECT_EQ(name_of(file), "12");
  file.task = "2";
  EXPECT_EQ(name_of(file), "12_2");
}

TEST_F(JobFiles, CountOnceSlurmHasTakenIt) {
  EXPECT_FALSE(has_job(directory));
  auto file = describe(directory, "/a.yaml");
  ASSERT_TRUE(file);
  ASSERT_TRUE(write_job(directory, *file));
  EXPECT_FALSE(has_job(directory));
  ASSERT_TRUE(set_number(directory, "12"));
  EXPECT_TRUE(has_job(directory));
  EXPECT_EQ(read_job(directory)->recipe_hash, file->recipe_hash);
}

// It may begin before the one who submitted it knows its number.
TEST_F(JobFiles, WhatAJobWroteThatHasBegunStays) {
  const JobFile begun{"12", "/a.yaml", "1", "2", "3", true, 4, "1"};
  ASSERT_TRUE(write_job(directory, begun));
  ASSERT_TRUE(set_number(directory, "13"));
  EXPECT_EQ(*read_job(directory), begun);
}

TEST_F(JobFiles, ChangesAfterSubmissionAreSeen) {
  const JobFile file = *describe(directory, "/a.yaml");
  EXPECT_TRUE(check_unchanged(directory, file));
  ASSERT_TRUE(publish_file(directory.recipe(), "name: b"));
  const auto changed = check_unchanged(directory, file);
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().message.find("recipe.yaml was changed after"), std::string::npos);
  ASSERT_TRUE(publish_file(directory.recipe(), "name: a"));
  ASSERT_TRUE(publish_file(directory.plan(), "{ }"));
  EXPECT_NE(check_unchanged(directory, file).error().message.find("plan.json"), std::string::npos);
  ASSERT_TRUE(publish_file(directory.plan(), "{}"));
  JobFile other = file;
  other.build = "another";
  EXPECT_NE(check_unchanged(directory, other).error().message.find("build"), std::string::npos);
}

TEST_F(JobFiles, VerdictsOfEarlierJobsDoNotCount) {
  using std::chrono::seconds;
  ASSERT_TRUE(publish_file(directory.script(), ""));
  EXPECT_FALSE(has_verdict(directory, {}));
  ASSERT_TRUE(publish_file(directory.verdict(), "{}"));
  EXPECT_TRUE(has_verdict(directory, {}));
  fs::last_write_time(directory.verdict(), fs::last_write_time(directory.script()) - seconds(2));
  EXPECT_FALSE(has_verdict(directory, {}));
}

// The verdict of a task before counts for the run, not for the task that has begun since.
TEST_F(JobFiles, VerdictsOfEarlierTasksDoNotCountForALaterOne) {
  using std::chrono::seconds;
  for (const auto& path : {directory.script(), directory.job(), directory.verdict()})
    ASSERT_TRUE(publish_file(path, "{}"));
  const auto now = fs::last_write_time(directory.job());
  fs::last_write_time(directory.script(), now - seconds(4));
  fs::last_write_time(directory.verdict(), now - seconds(2));
  JobFile array;
  array.num_tasks = 3;
  EXPECT_TRUE(has_verdict(directory, {}));
  EXPECT_FALSE(has_verdict(directory, array));
  fs::last_write_time(directory.verdict(), now);
  EXPECT_TRUE(has_verdict(directory, array));
}

run::Plan plan_on(std::vector<std::string> nodes) {
  run::Plan plan;
  for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank)
    plan.ranks.push_back({rank, nodes[static_cast<std::size_t>(rank)], rank % 2, -1});
  return plan;
}

TEST(RankMap, NodesGetTheNamesThatSlurmGave) {
  const run::Plan plan = plan_on({"any-1", "any-1", "any-2"});
  const auto placed = with_nodes(plan, {"node7", "node2", "node9"});
  EXPECT_EQ(placed, plan_on({"node7", "node7", "node2"}));
  EXPECT_EQ(with_nodes(plan, {"node7"}), plan) << "too few: whoever starts it says so";
  EXPECT_EQ(ranks_per_node(plan), 2);
}

TEST(RankMap, SaysWhereEachRankRuns) {
  run::Plan plan = plan_on({"any-1", "any-1", "any-2"});
  run::ShapePlan shape;
  shape.name = "short";
  shape.threads = 2;
  plan.shapes = {shape};
  const std::string text = rank_map(plan);
  EXPECT_NE(text.find("3 ranks on 2 nodes"), std::string::npos);
  EXPECT_NE(text.find("rank 1: any-1, cores 2-3"), std::string::npos);
}

TEST(SharedFolder, TemporaryFoldersAreEachMachinesOwn) {
  EXPECT_EQ(temporary_folder("/tmp/runs/a", ""), "/tmp");
  EXPECT_EQ(temporary_folder("/scratch/me/a", "/scratch/me"), "/scratch/me");
  EXPECT_EQ(temporary_folder("/tmpfiles/a", ""), "");
  EXPECT_EQ(temporary_folder("/home/me/runs/a", ""), "");
  EXPECT_TRUE(check_shared("/home/me/runs/a", "/opt/ptrain"));
  EXPECT_FALSE(check_shared("/tmp/runs/a", "/opt/ptrain"));
  EXPECT_TRUE(check_shared("/tmp/runs/a", "/tmp/build/bin/ptrain")) << "nodes must see that too";
}

}  // namespace
}  // namespace ptrain::submit
