#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "launcher/resume/stored_checkpoint.h"

namespace ptrain::resume {
namespace {

namespace fs = std::filesystem;

// One of PyTorch's, all of whose items are in this file.
class Stored : public testing::Test {
 protected:
  Stored() {
    std::string pattern = (fs::temp_directory_path() / "ptrain-stored-XXXXXX").string();
    folder_ = fs::path(::mkdtemp(pattern.data())) / "step-00000001";
    fs::copy(std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/dcp/plain_1",
             folder_);
    file_ = folder_ / "__0_0.distcp";
  }
  ~Stored() override { fs::remove_all(folder_.parent_path()); }

  void expect_no_file() const {
    const auto number = StoredCheckpoint::open(folder_).value().value("values.int");
    ASSERT_FALSE(number);
    EXPECT_EQ(number.error().code, ExitCode::kUnusable);
    EXPECT_EQ(number.error().message,
              "'values.int' in " + folder_.string() + ": " + file_.string() +
                  " is no file of the checkpoint: missing, no regular file, or leading out of it");
    EXPECT_EQ(number.error().hint, "use an undamaged checkpoint");
  }

  fs::path folder_, file_;
};

TEST_F(Stored, ValuesAreRead) {
  const auto number = StoredCheckpoint::open(folder_).value().value("values.int");
  EXPECT_EQ(number, nlohmann::json(3)) << "as make.py there has it";
}

TEST_F(Stored, WhatIsNoFileOfItIsRefused) {
  fs::rename(file_, folder_.parent_path() / "aside");
  expect_no_file();
  fs::create_directory(file_);
  expect_no_file();
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  expect_no_file();
  fs::remove(file_);
  fs::create_symlink(folder_.parent_path() / "aside", file_);
  expect_no_file();
}

}  // namespace
}  // namespace ptrain::resume
