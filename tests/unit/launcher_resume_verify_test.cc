#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/hash.h"
#include "core/run/manifest.h"
#include "launcher/resume/verify.h"

namespace ptrain::resume {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A checkpoint of PyTorch's beside the list that ptrain would have written.
class Verify : public testing::Test {
 protected:
  Verify() {
    std::string pattern = (fs::temp_directory_path() / "ptrain-verify-XXXXXX").string();
    folder_ = fs::path(::mkdtemp(pattern.data())) / "step-00000001";
    fs::copy(std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/dcp/plain_1",
             folder_);
    nlohmann::json files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string bytes = content(entry.path());
      Hasher64 hasher;
      hasher.update(std::as_bytes(std::span(bytes)));
      files[entry.path().filename().string()] = {{"bytes", bytes.size()},
                                                 {"xxh3", run::hash_text(hasher.digest())}};
    }
    std::ofstream(folder_ / "ptrain.json") << nlohmann::json{{"files", files}};
  }
  ~Verify() override { fs::remove_all(folder_.parent_path()); }

  std::string fault(Look look) const {
    const Status status = verify(folder_.string(), look);
    return status ? "" : status.error().message;
  }

  fs::path folder_;
};

TEST_F(Verify, AWholeOneIsGood) {
  EXPECT_EQ(fault(Look::kSizes), "");
  EXPECT_EQ(fault(Look::kContent), "");
}

TEST_F(Verify, AChangedByteShowsInTheContent) {
  const fs::path file = folder_ / "__0_0.distcp";
  std::string bytes = content(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_EQ(fault(Look::kSizes), "");
  EXPECT_EQ(fault(Look::kContent), file.string() + " is damaged: its checksum differs");
}

TEST_F(Verify, AFileCutShortOrMissingShowsAtOnce) {
  const fs::path file = folder_ / "__0_0.distcp";
  const auto size = fs::file_size(file);
  fs::resize_file(file, 10);
  EXPECT_EQ(fault(Look::kSizes),
            file.string() + " has 10 bytes instead of " + std::to_string(size));
  fs::remove(file);
  EXPECT_EQ(fault(Look::kSizes), file.string() + " is missing");
}

TEST_F(Verify, ADamagedListOrOneThatLeadsOutIsRefused) {
  std::ofstream(folder_ / "ptrain.json") << R"({"files": {"x": 7}})";
  EXPECT_NE(fault(Look::kSizes).find("does not list the files"), std::string::npos);
  std::ofstream(folder_ / "ptrain.json") << R"({"files": {"../x": {"bytes": 1, "xxh3": ""}}})";
  EXPECT_NE(fault(Look::kSizes).find("outside the checkpoint"), std::string::npos);
  std::ofstream(folder_ / "ptrain.json") << R"({"version": 3, "files": {}})";
  EXPECT_NE(fault(Look::kSizes).find("it has version 3, but this build reads versions up to 2"),
            std::string::npos);
  std::ofstream(folder_ / "ptrain.json") << R"({"version": "x", "files": {}})";
  EXPECT_NE(fault(Look::kSizes).find("does not list the files"), std::string::npos);
  fs::remove(folder_ / "ptrain.json");
  EXPECT_NE(fault(Look::kSizes).find("ptrain.json is missing"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::resume
