// What is given on the command line counts or is refused: no option is passed over in silence.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class Options : public RunFixture {
 protected:
  Options() : RunFixture(PTRAIN_TEST_BINARY) {}

  void expect_refused(const Words& words, const std::string& why) {
    EXPECT_EQ(run_command(words), 2) << output_;
    EXPECT_TRUE(said(why)) << why << " is missing in\n" << output_;
    EXPECT_FALSE(fs::exists(run_.root)) << "something was written";
  }
  std::string recipe() const { return folder_ + "/recipe.yaml"; }
};

TEST_F(Options, NumbersOutOfRangeAreNamedWithTheirRange) {
  const std::string far = "99999999999999999999", run = folder_;
  for (const std::string bad : {"-1", "x", "1.5", "", "0x1", far.c_str()}) {
    expect_refused({"plan", recipe(), "--program", bad}, "--program: '" + bad + "' is no whole");
    expect_refused({"logs", run, "--rank", bad}, "--rank: '" + bad + "' is no whole number from 0");
    expect_refused({"logs", run, "--attempt", bad}, "is no whole number from 1 to 1000000000");
    expect_refused({"run", recipe(), "--nodes", bad}, "--nodes: '" + bad + "' is no whole number");
    expect_refused({"run", recipe(), "--gpus-per-node", bad}, "from 1 to 65536");
    expect_refused({"data", "--lengths", recipe(), "--capacity", bad}, "--capacity: '" + bad);
    for (const char* option : {"--ranks", "--virtual", "--micro-batches", "--group"})
      expect_refused({"schedule", "1f1b", option, bad}, std::string(option) + ": '" + bad);
  }
  for (const char* bad : {"-1", "0", "nan", "inf", "1e999", "x"})
    for (const char* option : {"--memory-cap", "--overlapped"})
      expect_refused({"schedule", "1f1b", option, bad}, "is no number above 0");
  for (const char* bad : {"1,1,1,inf", "nan,1,1,0", "1,1,1e300,0", "1,-1,1,0"})
    expect_refused({"schedule", "1f1b", "--ranks", "2", "--micro-batches", "2", "--costs", bad},
                   "F,I,W,COMM");
}

TEST_F(Options, PairsOfWhichOneWouldBePassedOver) {
  const std::string csv = folder_ + "/own.csv";
  write("own.csv", "0F0,0B0\n");
  for (const Words& words : {Words{"plan", recipe(), "--program", "0", "--json"},
                             {"plan", recipe(), "--program", "0", "--explain"},
                             {"run", recipe(), "--dry-run", "--parity"},
                             {"run", recipe(), "--dry-run", "--detach"},
                             {"run", recipe(), "--json"},
                             {"resume", folder_, "--directory", "x"},
                             {"data", recipe(), "--capacity", "8"},
                             {"logs", folder_, "--follow", "--attempt", "1"},
                             {"schedule", "--list", "--ranks", "2"},
                             {"schedule", "--list", "--csv"},
                             {"schedule", "--list", "--svg", "x"},
                             {"schedule", "--list", "--costs", "1,1,1"},
                             {"schedule", "--list", "--memory-cap", "2"},
                             {"schedule", "--check", csv, "--virtual", "2"},
                             {"schedule", "--check", csv, "--group", "2"},
                             {"schedule", "--check", csv, "--memory-cap", "2"},
                             {"schedule", "--check", csv, "--csv", "--costs", "2,1,1,1"},
                             {"schedule", "1f1b", "--blocking"}})
    expect_refused(words, "ptrain: ");
  expect_refused({"run", recipe(), "--parity", "--nodes", "2"}, "--parity compares where it is");
  expect_refused({"run", recipe(), "--detach"}, "have no effect here");
}

// The plan of a run, for the same recipe however it is given.
TEST_F(Options, APlanIsForARecipeOfTheSameValues) {
  ASSERT_EQ(run_recipe({"seed=3", "optimizer.eps=1e-6"}), 0) << output_;
  const std::string plan = run_.plan();
  const auto with_plan = [&](Words words) {
    words.insert(words.begin(), {"run", recipe(), "--dry-run", "--plan", plan});
    return run_command(words);
  };
  EXPECT_EQ(with_plan({"optimizer.eps=0.000001", "seed=3"}), 0) << output_;
  EXPECT_EQ(with_plan({"seed=4", "optimizer.eps=1e-6", "seed=3"}), 0) << output_;
  EXPECT_EQ(with_plan({"seed=3"}), 2);
  EXPECT_TRUE(said("was made for another recipe:\n  optimizer.eps: 1e-06 -> 1e-08\n")) << output_;
  EXPECT_TRUE(said("leave --plan out")) << output_;
  fs::remove(folder_ + "/cluster.yaml");  // it is not planned again
  EXPECT_EQ(with_plan({"seed=3", "optimizer.eps=1e-6"}), 0) << output_;
}

// Where the plan is made for fewer nodes than the file has, it says so.
TEST_F(Options, NodesThatNobodyAskedForAreNamed) {
  write("cluster.yaml",
        "name: two\nnodes: [{name: a, cores: 2, memory_gib: 8}, {name: b, cores: 2, memory_gib: "
        "8}]\n");
  EXPECT_EQ(run_command({"plan", recipe()}), 0) << output_;
  EXPECT_TRUE(said("the cluster file 'two' has 2 nodes, and 1 is planned for")) << output_;
  EXPECT_EQ(run_command({"plan", recipe(), "cluster.slurm.nodes=2", "parallel.dp=4",
                         "shapes.1.global_batch_tokens=256"}),
            0)
      << output_;
  EXPECT_FALSE(said("planned for")) << output_;
  EXPECT_EQ(run_command({"plan", recipe(), "cluster.slurm.nodes=3"}), 2);
  EXPECT_TRUE(said("asks for 3 nodes, 'two' has 2")) << output_;
}

// What is refused changes nothing: the run goes on as it was.
TEST_F(Options, ARefusedChangeOfARunIsNotKept) {
  EXPECT_EQ(end_of(start_run("0:segv@15")), 11) << output_;
  const std::string plan = read(run_.plan());
  EXPECT_EQ(
      run_command({"resume", run_.root, "shapes.0.steps=1", "shapes.1.steps=1", "--allow-changes"}),
      2);
  EXPECT_TRUE(said("10 steps are done already, but the changed recipe has 2")) << output_;
  EXPECT_EQ(read(run_.plan()), plan);
  EXPECT_EQ(run_command({"resume", run_.root, "seed=7"}), 2);
  EXPECT_TRUE(said("seed: 1 -> 7") && said("--allow-changes")) << output_;
  EXPECT_EQ(read(run_.plan()), plan);
  EXPECT_EQ(run_command({"resume", run_.root}), 0) << output_;
  EXPECT_EQ(verdict().step, 40);
}

// The remedy of a failure is a command that works as it stands.
TEST_F(Options, TheCommandOfAVerdictWorks) {
  EXPECT_EQ(end_of(start_run("0:segv@2")), 11) << output_;
  const std::string resume = "ptrain resume " + run_.root;
  EXPECT_TRUE(said("no checkpoint was written: `" + resume + "` starts where this run began"))
      << output_;
  EXPECT_EQ(run_command({"resume", run_.root}, "0:segv@15"), 11) << output_;
  EXPECT_TRUE(said("continue from step 10 with `" + resume + "`")) << output_;
  EXPECT_EQ(run_command({"resume", run_.root}), 0) << output_;
  EXPECT_EQ(verdict().step, 40);
}

}  // namespace
}  // namespace ptrain
