// Files and folders that are not what they are taken for, through every command that reads or
// writes one: each ends at once, with a clear error, and nothing is put in the place of another.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class HostileFiles : public RunFixture {
 protected:
  HostileFiles() : RunFixture(PTRAIN_TEST_BINARY) {}

  // Ends with the code, names a reason and a remedy, and is no bug.
  void expect(int code, const Words& words, const std::string& why = "") {
    EXPECT_EQ(run_command(words), code) << output_;
    EXPECT_TRUE(said("ptrain: ") && said(why)) << why << " is missing in\n" << output_;
    EXPECT_TRUE(said("\n  ") || said("; ")) << "no remedy in\n" << output_;
    EXPECT_FALSE(said("bug of ptrain")) << output_;
    EXPECT_LT(took_, 5) << words.front();
  }
  void expect_reads_refused(const std::string& file) {
    const std::string recipe = folder_ + "/recipe.yaml";
    for (const Words& words : {Words{"plan", file},
                               {"run", file},
                               {"data", file},
                               {"plan", recipe, "--cluster", file},
                               {"plan", recipe, "cluster.file=" + file},
                               {"run", recipe, "--plan", file},
                               {"resume", folder_ + "/none", "--recipe", file},
                               {"data", "--lengths", file, "--capacity", "8"},
                               {"schedule", "--check", file}})
      expect(2, words);
    for (const char* command : {"status", "logs", "stop", "explain", "report", "resume"})
      expect(2, {command, file});
  }
  std::string pipe(const std::string& path) const {
    fs::remove_all(path);
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
};

TEST_F(HostileFiles, WhereAFileIsWanted) {
  fs::create_directory(folder_ + "/folder");
  fs::create_symlink("loop", folder_ + "/loop");
  write("empty", "");
  std::string rubbish;
  for (int i = 0; i < 3000; ++i) rubbish += static_cast<char>(i * i * 7 + i);
  write("rubbish", rubbish);
  write("large", std::string(3 << 20, ' '));
  pipe(folder_ + "/pipe");
  for (const char* name : {"folder", "loop", "empty", "rubbish", "large", "pipe", "none"})
    expect_reads_refused(folder_ + "/" + name);
  expect_reads_refused("/dev/zero");
  expect_reads_refused(folder_ + "/" + std::string(5000, 'x'));
}

TEST_F(HostileFiles, WhereAFolderOfRunsIsWanted) {
  fs::create_symlink("loop", folder_ + "/loop");
  for (const std::string& name : Words{"loop", "recipe.yaml", "none", std::string(5000, 'x')})
    expect(2, {"list", folder_ + "/" + name}, "there is no folder");
}

// A rename would replace the device or pipe itself.
TEST_F(HostileFiles, WritesReplaceNothingButFiles) {
  const Words draw{"schedule", "1f1b", "--ranks", "2", "--micro-batches", "2", "--svg"};
  const auto drawn_to = [&](const std::string& path) {
    Words words = draw;
    words.push_back(path);
    return words;
  };
  const std::string path = pipe(folder_ + "/pipe");
  expect(3, drawn_to(path), "not a regular file");
  EXPECT_TRUE(fs::is_fifo(path));
  expect(3, drawn_to(folder_), "Is a directory");
  expect(3, drawn_to(folder_ + "/none/one.svg"), "there is no folder " + folder_ + "/none");
  EXPECT_EQ(run_command(drawn_to(folder_ + "/one.svg")), 0) << output_;
  EXPECT_EQ(run_command(drawn_to(folder_ + "/one.svg")), 0) << "again: " << output_;
}

// A run directory is planned for, but cannot be: the dry run says so too.
TEST_F(HostileFiles, RunDirectoriesThatCannotBeMade) {
  const std::string recipe = folder_ + "/recipe.yaml";
  for (const bool dry : {false, true}) {
    const auto expect_refused = [&](int code, const std::string& path, const std::string& why) {
      Words words{"run", recipe, "--directory", path};
      if (dry) words.push_back("--dry-run");
      expect(code, words, why);
    };
    expect_refused(2, recipe, "exists already");
    expect_refused(3, recipe + "/run", "is no folder");
    expect_refused(3, folder_ + "/" + std::string(300, 'x'), "File name too long");
  }
}

// On a disk with room for its folders alone: what was begun is taken away.
TEST_F(HostileFiles, ARunThatCannotBeWrittenLeavesNothing) {
  const std::string disk = folder_ + "/disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "nr_inodes=5") != 0)
    GTEST_SKIP() << "cannot mount a small file system";
  expect(3, {"run", folder_ + "/recipe.yaml", "--directory", disk + "/run"},
         "/run/recipe.yaml: No space left");
  EXPECT_TRUE(fs::is_empty(disk));
  ::umount(disk.c_str());
}

class HostileRun : public HostileFiles {
 protected:
  void SetUp() override {
    HostileFiles::SetUp();
    ASSERT_EQ(run_recipe(), 0) << output_;
    fs::rename(run_.root, folder_ + "/whole");
  }
  void restore() const {
    fs::remove_all(run_.root);
    fs::copy(folder_ + "/whole", run_.root, fs::copy_options::recursive);
  }
};

TEST_F(HostileRun, PipesInPlaceOfItsFilesAreNotWaitedFor) {
  for (const std::string& file : {run_.lock(), run_.metrics(), run_.events(), run_.verdict(),
                                  run_.job(), run_.rank_log(1, 0), run_.recipe()}) {
    restore();
    pipe(file);
    for (const char* command : {"status", "logs", "stop", "explain", "report"}) {
      const int code = run_command({command, run_.root});
      EXPECT_TRUE(code == 0 || code == 2 || code == 3) << command << " " << code << output_;
      EXPECT_LT(took_, 5) << command << " " << file;
    }
  }
}

TEST_F(HostileRun, DamagedFilesAreNamedWithLineAndRemedy) {
  restore();
  std::ofstream(run_.events(), std::ios::app) << "{\"v\": oops}\n";
  const auto lines = static_cast<int>(std::ranges::count(read(run_.events()), '\n'));
  expect(2, {"explain", run_.root}, "events.jsonl:" + std::to_string(lines) + ":1: ");
  EXPECT_TRUE(said("remove the line")) << output_;
  restore();
  std::ofstream(run_.job()) << "\0\1\2";
  expect(2, {"status", run_.root}, "job.json");
  EXPECT_TRUE(said("squeue")) << output_;
  restore();
  std::ofstream(run_.plan()) << "{";
  expect(2, {"list", folder_}, "run/plan.json");
  EXPECT_TRUE(said("whole  finished")) << "the others are listed: " << output_;
}

}  // namespace
}  // namespace ptrain
