#include <gtest/gtest.h>

#include "launcher/preflight/judge.h"
#include "launcher/preflight/preflight.h"

namespace ptrain::preflight {
namespace {

// Four nodes on which all is well, and what they are judged by.
struct Case {
  Needs needs{{"n1", "n2", "n3", "n4"}, 1000, 1000, 100, 0, true, 500, 501};
  std::vector<NodeReport> reports;

  Case() {
    for (const auto& node : needs.nodes) {
      reports.push_back({node, "b", "e", "p", 500.5, true, true, "", 2000, 5000, "", 2000, 1024, 0,
                         10, "", 1e9, ""});
    }
  }
  NodeReport& third() { return reports[2]; }
  std::vector<Finding> findings() const { return judge(needs, reports); }
  // The only finding, which must be of the third node.
  Finding finding() const {
    const auto all = findings();
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].node, "n3");
    return all[0];
  }
};

TEST(Judge, NothingIsFoundWhereAllIsWell) { EXPECT_TRUE(Case().findings().empty()); }

TEST(Judge, ANodeThatDoesNotAnswerIsNamed) {
  Case one;
  one.reports.erase(one.reports.begin() + 2);
  EXPECT_EQ(to_text(one.finding()), "n3: does not answer (leave it out: --exclude=n3)");
  EXPECT_TRUE(one.finding().refuses);
}

// A run may go on without nodes that do not answer, but not where something else is wrong too.
TEST(Judge, NodesThatDoNotAnswerAreLeftToTheRun) {
  Case one;
  one.reports.erase(one.reports.begin() + 2);
  one.reports[0].speed = 1;
  const auto settled = settle(one.findings());
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->silent, std::vector<std::string>{"n3"});
  EXPECT_EQ(settled->warnings.size(), 1u);
  one.reports[0].inodes_free = 3;
  const auto refused = settle(one.findings());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kEnvironment);
  for (const char* part : {"n3: does not answer", "n1: only 3 more files fit"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part;
}

TEST(Judge, RefusesWhatCannotWork) {
  const auto refused = [](auto change) {
    Case one;
    change(one.third());
    const Finding found = one.finding();
    EXPECT_TRUE(found.refuses) << found.what;
    EXPECT_FALSE(found.remedy.empty());
    return found.what;
  };
  EXPECT_EQ(refused([](auto& r) { r.binary = "x"; }), "has another binary than most nodes");
  EXPECT_EQ(refused([](auto& r) { r.engine = ""; }), "has no engine");
  EXPECT_EQ(refused([](auto& r) { r.plan = "x"; }), "reads another plan.json than the others");
  EXPECT_EQ(refused([](auto& r) { r.sees_mark = false; }),
            "does not see what is written to the run directory elsewhere, not even 10 s later");
  EXPECT_EQ(refused([](auto& r) { r.knows_directory = false; }),
            "does not get done with looking at the run directory");
  EXPECT_EQ(refused([](auto& r) { r.write_error = "read-only"; }), "read-only");
  EXPECT_EQ(refused([](auto& r) { r.inodes_free = 3; }),
            "only 3 more files fit where the run directory is");
  EXPECT_EQ(refused([](auto& r) { r.temporary_error = "/tmp: full"; }),
            "temporary files cannot be made: /tmp: full");
  EXPECT_EQ(refused([](auto& r) { r.open_files = 64; }),
            "a process may open 64 files, a rank needs 100");
  EXPECT_EQ(refused([](auto& r) { r.gpu_error = "GPU 1 is ill"; }), "GPU 1 is ill");
  EXPECT_EQ(refused([](auto& r) { r.next_error = "cannot reach n4"; }), "cannot reach n4");
}

TEST(Judge, WarnsOfWhatMayWork) {
  const auto warned = [](auto change) {
    Case one;
    change(one.third());
    const Finding found = one.finding();
    EXPECT_FALSE(found.refuses) << found.what;
    return found.what;
  };
  EXPECT_EQ(warned([](auto& r) { r.disk_free = std::int64_t{0}; }),
            "0.0 GiB are free for the run directory, its checkpoints may take 0.0");
  EXPECT_EQ(warned([](auto& r) { r.memory_available = 1; }),
            "0.0 GiB of memory are free, its ranks are predicted to take 0.0");
  EXPECT_EQ(warned([](auto& r) { r.time_s = 800; }), "its clock is 299 s ahead");
  EXPECT_EQ(warned([](auto& r) { r.time_s = 200; }), "its clock is 300 s behind");
  EXPECT_EQ(warned([](auto& r) { r.speed = 5; }), "computes at 50 % of the median of the nodes");
  EXPECT_EQ(warned([](auto& r) { r.next_bytes_per_s = 1e8; }),
            "sends to its neighbour at 10 % of the median of the nodes");
}

TEST(Judge, GpusCountWhereThePlanNamesSome) {
  Case one;
  one.needs.gpus = 2;
  for (auto& report : one.reports) report.num_gpus = 2;
  EXPECT_TRUE(one.findings().empty());
  one.third().num_gpus = 1;
  EXPECT_EQ(one.finding().what, "1 GPUs can be used, the plan puts 2 ranks there");
  one.third().gpu_tool_error = "nvidia-smi fails with code 9: no driver";
  EXPECT_EQ(
      one.finding().what,
      "1 GPUs can be used, the plan puts 2 ranks there; nvidia-smi fails with code 9: no driver");
  EXPECT_TRUE(one.finding().refuses);
  one.third().num_gpus = -1;
  EXPECT_EQ(one.finding().what, "does not get done with looking at its GPUs");
  one.needs.gpus = 0;  // as on nodes whose GPUs are not looked at
  one.third().gpu_tool_error = "";
  EXPECT_TRUE(one.findings().empty());
  one.third().num_gpus = 0;
  one.third().gpu_tool_error = "nvidia-smi fails with code 9: no driver";
  EXPECT_EQ(one.finding().what, "nvidia-smi fails with code 9: no driver");
  EXPECT_FALSE(one.finding().refuses);
}

TEST(Judge, TwoNodesHaveNoMedian) {
  Case one;
  one.needs.nodes.resize(2);
  one.reports.resize(2);
  one.reports[0].speed = 1;
  EXPECT_TRUE(one.findings().empty());
}

TEST(NodeReport, ComesBack) {
  const NodeReport report{"n\"1", "b", "", "p", 1.5, true, true, "w", 7,  -1,
                          "t",    9,   10, 2,   3.5, "n",  4,    "g", "c"};
  EXPECT_EQ(report_from_line(to_line(report)), report);
  for (const char* line : {"", "{}", "srun: error: node1: task 0: Killed", "[1]"})
    EXPECT_FALSE(report_from_line(line)) << line;
}

}  // namespace
}  // namespace ptrain::preflight
