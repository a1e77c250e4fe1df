#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/submit/job.h"

namespace ptrain::submit {
namespace {

Job job_of(recipe::Slurm slurm) {
  Job job{{"/home/me/my runs/a"}, "small", "/opt/ptrain/bin/ptrain", {}, 4};
  job.cluster.slurm = std::move(slurm);
  return job;
}

recipe::Slurm everything() {
  recipe::Slurm slurm;
  slurm.nodes = 3;
  slurm.partition = "short";
  slurm.account = "physics";
  slurm.qos = "high";
  slurm.time = "1-12";
  slurm.constraint = "fat&ib";
  slurm.exclude = "node[3-4]";
  slurm.comment = "it's \"mine\" \\ #1";
  slurm.extra = {"--mail-type=END", "--mem=64G"};
  return slurm;
}

TEST(Job, AsksInTheWordsOfSbatch) {
  EXPECT_EQ(
      requests(job_of(everything()).cluster),
      (std::vector<std::string>{"--nodes=3", "--partition=short", "--account=physics", "--qos=high",
                                "--time=1-12", "--constraint=fat&ib", "--exclude=node[3-4]",
                                "--comment=it's \"mine\" \\ #1", "--mail-type=END", "--mem=64G"}));
  EXPECT_EQ(requests({}), std::vector<std::string>{"--nodes=1"});
}

// sbatch takes the last of two that contradict each other.
TEST(Job, ExtraArgumentsWin) {
  const auto arguments = arguments_of(job_of(everything()));
  const auto ours = std::ranges::find(arguments, "--mem=0");
  const auto theirs = std::ranges::find(arguments, "--mem=64G");
  ASSERT_NE(ours, arguments.end());
  EXPECT_LT(ours, theirs);
}

// What Slurm 22.05 read back of such a line: tests/cluster/submit_test.py asks it.
TEST(Job, QuotesForSlurm) {
  EXPECT_EQ(quoted_argument("--nodes=3"), "--nodes=3");
  EXPECT_EQ(quoted_argument("--comment=a b"), "\"--comment=a b\"");
  EXPECT_EQ(quoted_argument("--comment=\"a\" \\ #b"), "\"--comment=\\\"a\\\" \\\\ #b\"");
}

TEST(Job, ScriptIsShortAndRunsByHand) {
  Job job = job_of({});
  job.cluster.slurm.nodes = 2;
  job.cluster.setup = {"module load openmpi", "export A='b c'"};
  EXPECT_EQ(
      script_of(job),
      "#!/bin/bash\n"
      "# Trains the run in /home/me/my runs/a.\n"
      "# ptrain submits it with these options; by hand: sbatch '/home/me/my runs/a/job.sh'\n"
      "#SBATCH --job-name=small\n"
      "#SBATCH \"--chdir=/home/me/my runs/a\"\n"
      "#SBATCH --output=logs/slurm-%j.out\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --exclusive\n"
      "#SBATCH --mem=0\n"
      "#SBATCH --no-kill\n"
      "#SBATCH --requeue\n"
      "#SBATCH --ntasks-per-node=4\n"
      "#SBATCH --nodes=2\n"
      "\n"
      "# cluster.setup of the recipe; a line that fails ends the job.\n"
      "set -e\n"
      "module load openmpi\n"
      "export A='b c'\n"
      "set +e\n"
      "\n"
      "# Starts the ranks, watches them, and writes the verdict. It takes this shell's place, "
      "so that\n"
      "# signals of Slurm reach it.\n"
      "exec /opt/ptrain/bin/ptrain supervise '/home/me/my runs/a'\n");
}

std::string refusal(const Job& job) {
  const auto status = check_requests(job);
  return status ? "" : status.error().message;
}

TEST(Job, ControlCharactersReachNeitherSbatchNorScript) {
  using recipe::Slurm;
  EXPECT_EQ(refusal(job_of(everything())), "");
  for (auto member : {&Slurm::partition, &Slurm::account, &Slurm::qos, &Slurm::time,
                      &Slurm::constraint, &Slurm::exclude, &Slurm::comment})
    for (const char* bad : {"a\n#SBATCH --nodes=9", "a\rb", "a\tb", "a\x1b[2J", "a\xc2\x85z"}) {
      Slurm slurm;
      slurm.*member = bad;
      EXPECT_NE(refusal(job_of(slurm)).find("cluster.slurm."), std::string::npos) << bad;
    }
  Job job = job_of({});
  job.cluster.setup = {"true", "a\nb"};
  EXPECT_NE(refusal(job).find("cluster.setup.1"), std::string::npos);
  job = job_of({});
  job.cluster.slurm.extra = {"--mail-user=a\nb"};
  EXPECT_NE(refusal(job).find("cluster.slurm.extra.0"), std::string::npos);
  job = job_of({});
  job.directory.root = "/home/me/a\nb";
  EXPECT_NE(refusal(job).find("--directory"), std::string::npos);
}

// What fails in one task would fail in all.
TEST(Job, ASetupThatFailsEndsTheArray) {
  recipe::Slurm slurm;
  slurm.array = "3";
  Job job = job_of(slurm);
  job.cluster.setup = {"module load openmpi"};
  EXPECT_NE(script_of(job).find("trap 'scancel --state=PENDING \"$SLURM_ARRAY_JOB_ID\"' EXIT\n"
                                "set -e\n"
                                "module load openmpi\n"
                                "set +e\n"
                                "trap - EXIT\n"),
            std::string::npos);
}

TEST(Job, ExtraMayNotMakeAnotherJobOfIt) {
  for (const char* bad : {"--array=1-3", "--arr=1-3", "--hol", "-a1-3", "--wrap=true", "--output=x",
                          "-ox", "--nodes=9", "-N9", "--test-only", "node3", ""}) {
    Job job = job_of({});
    job.cluster.slurm.extra = {bad};
    EXPECT_NE(refusal(job), "") << bad;
  }
  for (const char* good : {"--mail-type=END", "--no-requeue", "--arrayed", "--reservation=a b"}) {
    Job job = job_of({});
    job.cluster.slurm.extra = {good};
    EXPECT_EQ(refusal(job), "") << good;
  }
}

TEST(Job, VariablesByNameOnly) {
  Job job = job_of({});
  job.cluster.env = {"HF_HOME", "_x1"};
  EXPECT_EQ(refusal(job), "");
  for (const char* bad : {"TOKEN=secret", "1A", "", "A B", "A-B"}) {
    job.cluster.env = {bad};
    EXPECT_EQ(refusal(job), "cluster.env.0: is no name of a variable") << "the value is not shown";
  }
}

TEST(Job, GpusOnlyWhereAFileTellsTheirMemory) {
  Job job = job_of({});
  job.cluster.slurm.gpus_per_node = 4;
  EXPECT_NE(refusal(job).find("how much memory"), std::string::npos);
  job.cluster.file = "cluster.yaml";
  EXPECT_EQ(refusal(job), "");
  job.cluster.slurm.nodes = 2;
  EXPECT_EQ(refusal(job), "");
  EXPECT_NE(script_of(job).find("#SBATCH --gpus-per-node=4\n"), std::string::npos);
}

// One task after the other; the output of each is named after it.
TEST(Job, ArrayOfTasksThatFollowEachOther) {
  recipe::Slurm slurm;
  EXPECT_EQ(num_tasks(slurm), 0);
  slurm.array = "3";
  EXPECT_EQ(num_tasks(slurm), 3);
  const std::string script = script_of(job_of(slurm));
  EXPECT_NE(script.find("#SBATCH --output=logs/slurm-%A_%a.out\n"), std::string::npos) << script;
  EXPECT_NE(script.find("#SBATCH --array=1-3%1\n"), std::string::npos) << script;
  EXPECT_EQ(script.find("%j"), std::string::npos);
}

TEST(Job, AskedForByAnyField) {
  recipe::Cluster cluster;
  cluster.ranks_per_node = 3;
  EXPECT_FALSE(asks_for_slurm(cluster));
  cluster.slurm.comment = "x";
  EXPECT_TRUE(asks_for_slurm(cluster));
}

}  // namespace
}  // namespace ptrain::submit
