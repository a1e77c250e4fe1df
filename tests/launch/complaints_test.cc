// What users of other systems complained of (docs/complaints.md, themes A, B, E and I), played on
// one machine through the real command.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "launcher/supervise/run_folder.h"
#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Complaints : public RunFixture {
 protected:
  Complaints() : RunFixture(PTRAIN_TEST_BINARY) {}

  base::Subprocess start_endless(const std::string& fake = "") {
    auto process = start_run(fake, {"shapes.0.steps=100000", "checkpoint.every_steps=0"});
    wait_until_ready();
    std::this_thread::sleep_for(milliseconds(400));
    since_ = Clock::now();
    return process;
  }

  // Whether a file of the run holds the text.
  bool run_holds(const std::string& text) const {
    for (const auto& entry : fs::recursive_directory_iterator(run_.root))
      if (entry.is_regular_file() && read(entry.path()).find(text) != std::string::npos)
        return true;
    return false;
  }
};

TEST_F(Complaints, ARankThatIsDeafToTermEndsAtTheSecondInterrupt) {
  auto process = start_endless("1:deaf@5");
  ::kill(process.pid(), SIGINT);
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(process.pid(), SIGTERM);
  EXPECT_EQ(end_of(std::move(process)), 128 + SIGTERM) << output_;
  EXPECT_LT(took_, 6);
}

TEST_F(Complaints, ARankThatIsDeafToTermEndsWithItsDeadPeer) {
  since_ = Clock::now();
  EXPECT_EQ(end_of(start_run("1:deaf@5,0:kill@5")), 11) << output_;
  EXPECT_EQ(verdict().rank, 0);
  EXPECT_LT(took_, 12);
}

// TearDown looks for processes that are left.
TEST_F(Complaints, HelpersThatTermDoesNotEndAreGoneAfterASuccess) {
  EXPECT_EQ(end_of(start_run("1:helper@3,0:helper@4")), 0) << output_;
  EXPECT_TRUE(run_holds("fake: helper"));
}

TEST_F(Complaints, HelpersThatTermDoesNotEndAreGoneAfterAFailure) {
  EXPECT_EQ(end_of(start_run("1:helper@3,0:kill@5")), 11) << output_;
}

// The terminal of the foreground command goes away.
TEST_F(Complaints, AClosedTerminalSavesAndStops) {
  const std::string command = binary_ + " run " + folder_ + "/recipe.yaml --directory " +
                              run_.root + " shapes.0.steps=100000 checkpoint.every_steps=0";
  auto terminal =
      base::Subprocess::start({{"/usr/bin/script", "-qec", command, "/dev/null"}, environment_});
  ASSERT_TRUE(terminal);
  wait_until_ready();
  std::this_thread::sleep_for(milliseconds(400));
  ::kill(terminal->pid(), SIGKILL);
  for (int i = 0; i < 500 && !fs::exists(run_.verdict()); ++i)
    std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(fs::exists(run_.verdict()));
  EXPECT_EQ(verdict().code, ExitCode::kStopped) << verdict().reason;
  EXPECT_NE(verdict().reason.find("HUP"), std::string::npos) << verdict().reason;
  EXPECT_FALSE(supervise::checkpoint_steps(run_).empty());
  for (int i = 0; i < 250 && processes_alive() > 0; ++i)
    std::this_thread::sleep_for(milliseconds(20));
}

TEST_F(Complaints, TheTailOfTheLogOutlivesAStop) {
  environment_.emplace_back("PTRAIN_FAKE_TALK", "1");
  auto process = start_endless();
  ::kill(process.pid(), SIGINT);
  EXPECT_EQ(end_of(std::move(process)), 20) << output_;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string tail = "step " + std::to_string(verdict().step) + " is done\nand half a li";
    EXPECT_TRUE(read(run_.rank_log(1, rank)).ends_with(tail)) << read(run_.rank_log(1, rank));
  }
  EXPECT_EQ(run_command({"logs", run_.root, "--rank", "1"}), 0);
  EXPECT_TRUE(said("and half a li")) << output_;
}

TEST_F(Complaints, VariablesArriveByteForByte) {
  const std::string value =
      "a \"b\" 'c' (d) [e] {f} $HOME `g` \\h;i&j|k<l>m*n?~ \xc3\xbc\t=,:\nlast";
  environment_.emplace_back("PTRAIN_TEST_VALUE", value);
  environment_.emplace_back("PTRAIN_FAKE_SHOW", "PTRAIN_TEST_VALUE");
  EXPECT_EQ(end_of(start_run("")), 0) << output_;
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(read(run_.rank_log(1, rank)), "PTRAIN_TEST_VALUE=[" + value + "]\n");
}

// Even the program lies in such a folder.
TEST_F(Complaints, PathsWithSpacesQuotesAndLettersOfAllKinds) {
  const std::string odd = folder_ + "/a b \"c\" 'd' $e (f) \xc3\xbc \xe6\xbc\xa2 ;g&h*";
  fs::create_directories(odd);
  for (const char* name : {"recipe.yaml", "cluster.yaml", "text.txt"})
    fs::copy_file(folder_ + "/" + name, odd + "/" + name);
  fs::copy(fs::path(binary_).parent_path(), odd + "/bin");
  binary_ = odd + "/bin/ptrain";
  run_.root = odd + "/the run";
  EXPECT_EQ(run_command({"run", odd + "/recipe.yaml", "--directory", run_.root}), 0) << output_;
  EXPECT_EQ(verdict().step, 40);
  EXPECT_EQ(run_command({"status", run_.root}), 0) << output_;
  EXPECT_TRUE(said("state: finished")) << output_;
  EXPECT_EQ(run_command({"report", run_.root}), 0) << output_;
  EXPECT_EQ(run_command({"resume", run_.root}), 0) << output_;
}

class ShippedComplaints : public RunFixture {
 protected:
  ShippedComplaints() : RunFixture(PTRAIN_SHIPPED_BINARY) {}
};

TEST_F(ShippedComplaints, TextsAndCachesWithSpacesQuotesAndLettersOfAllKinds) {
  const std::string odd = folder_ + "/a b \"c\" 'd' $e (f) \xc3\xbc;&";
  fs::create_directories(odd);
  for (const char* name : {"recipe.yaml", "cluster.yaml"})
    fs::copy_file(folder_ + "/" + name, odd + "/" + name);
  fs::copy_file(folder_ + "/text.txt", odd + "/my \xc3\xbc text's.txt");
  environment_ = {{"XDG_CACHE_HOME", odd + "/the cache"}};
  run_.root = odd + "/the run";
  EXPECT_EQ(run_command({"run", odd + "/recipe.yaml", "--directory", run_.root,
                         "data.train.0.path=\"my *.txt\"", "shapes.0.steps=3", "shapes.1.steps=2"}),
            0)
      << output_;
  EXPECT_EQ(verdict().step, 5);
}

TEST_F(Complaints, SecretsAreInNoFileOutputOrProcessList) {
  const std::string secret = "hf_SecretOfTheUser42";
  environment_.emplace_back("HF_TOKEN", secret);
  environment_.emplace_back("WANDB_API_KEY", secret);
  auto process = start_endless("1:error@60");
  // The token of the control connection, as a rank got it.
  const std::string variables = read("/proc/" + std::to_string(pid_of(0)) + "/environ");
  const std::string name = "PTRAIN_CONTROL_TOKEN=";
  const auto found = variables.find(name);
  ASSERT_NE(found, std::string::npos);
  const std::string token =
      variables.substr(found + name.size(), variables.find('\0', found) - found - name.size());
  ASSERT_GE(token.size(), 16u);
  for (const auto& entry : fs::directory_iterator("/proc"))
    for (const std::string& one : {token, secret})
      EXPECT_EQ(read(entry.path() / "cmdline").find(one), std::string::npos);
  EXPECT_EQ(end_of(std::move(process)), 16) << output_;
  for (const std::string& one : {token, secret}) {
    EXPECT_FALSE(run_holds(one));
    EXPECT_FALSE(said(one));
  }
  run_.root = folder_ + "/shown";
  EXPECT_EQ(end_of(start_run("", {"--dry-run"})), 0);
  EXPECT_FALSE(said(secret)) << output_;
}

TEST_F(Complaints, TheFailedRanksLastWordsAreQuoted) {
  EXPECT_EQ(end_of(start_run("1:error@5")), 16) << output_;
  EXPECT_TRUE(said("the end of " + run_.rank_log(1, 1))) << output_;
  EXPECT_TRUE(said("  | fake: error: the loss is not a number")) << output_;
  EXPECT_FALSE(said(run_.rank_log(1, 0))) << output_;
}

// Whatever the limit, what is short is said before anything is written.
TEST_F(Complaints, TooFewFileDescriptorsAreNamed) {
  for (const int limit : {8, 16, 24, 64}) {
    prefix_ = {"/bin/sh", "-c", "ulimit -n " + std::to_string(limit) + "; exec \"$@\"", "sh"};
    since_ = Clock::now();
    EXPECT_EQ(end_of(start_run("")), 3) << limit << output_;
    EXPECT_TRUE(said("starting 2 ranks takes 84") && said("`ulimit -n 4096`")) << limit << output_;
    EXPECT_FALSE(fs::exists(run_.root)) << limit;
    EXPECT_LT(took_, 5) << limit;
  }
}

TEST_F(Complaints, ALimitOfFileDescriptorsThatMayBeRaisedIsRaised) {
  prefix_ = {"/bin/sh", "-c", "ulimit -S -n 16; exec \"$@\"", "sh"};
  EXPECT_EQ(end_of(start_run("")), 0) << output_;
}

TEST_F(Complaints, AFolderForTemporaryFilesThatCannotBeUsedIsNamed) {
  for (const std::string& folder : {folder_ + "/none", std::string("/proc")}) {
    environment_ = {{"XDG_CACHE_HOME", folder_ + "/cache"}, {"TMPDIR", folder}};
    EXPECT_EQ(end_of(start_run("")), 3) << output_;
    EXPECT_TRUE(said("cannot be made in " + folder + ", which TMPDIR names")) << output_;
    EXPECT_TRUE(said("unset it")) << output_;
    EXPECT_FALSE(fs::exists(run_.root));
  }
}

// Sockets have short names; their folder may not.
TEST_F(Complaints, AFolderForTemporaryFilesWithALongName) {
  const std::string folder = folder_ + "/" + std::string(150, 'x');
  fs::create_directories(folder);
  environment_ = {{"XDG_CACHE_HOME", folder_ + "/cache"}, {"TMPDIR", folder}};
  EXPECT_EQ(end_of(start_run("")), 0) << output_;
}

}  // namespace
}  // namespace ptrain
