#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/data/lengths.h"
#include "engine/base/engine_error.h"
#include "engine/data/cache.h"
#include "engine/data/file.h"
#include "engine/data/index.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;

// A folder with files of its own; its cache lies outside the sources.
class PrepareIndex : public testing::Test {
 protected:
  PrepareIndex() {
    std::string name = (fs::temp_directory_path() / "ptrain-data-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::create_directory(root_ / "text");
    data_.cache = "cache";
    data_.train = {{"text/**"}};
  }
  ~PrepareIndex() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / "text" / name).parent_path());
    std::ofstream(root_ / "text" / name, std::ios::binary) << text;
  }
  void write_many(int count) const {
    for (int i = 0; i < count; ++i) write(fmt::format("f{}", i), fmt::format("document {}", i));
  }
  IndexFiles prepare() const { return prepare_index(data_, root_.string()); }
  static std::vector<std::string> texts(const std::string& path) {
    const auto index = open_index(path);
    std::vector<std::string> result;
    for (std::int64_t i = 0; i < index->num_documents(); ++i) {
      const auto tokens = index->document(i);
      EXPECT_EQ(tokens[tokens.size() - 1], static_cast<std::uint32_t>(kByteEos));
      result.emplace_back();
      for (std::int64_t t = 0; t + 1 < tokens.size(); ++t)
        result.back().push_back(static_cast<char>(tokens[t]));
    }
    return result;
  }
  Error error_of(const auto& call) const {
    try {
      call();
    } catch (const EngineError& error) {
      EXPECT_FALSE(error.error().hint.empty());
      return error.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  Error prepare_error() const {
    return error_of([&] { prepare(); });
  }

  fs::path root_;
  recipe::Data data_;
};

using Texts = std::vector<std::string>;

TEST_F(PrepareIndex, FilesInSortedOrderEmptyOnesSkipped) {
  write("b.txt", "two");
  write("a.txt", "one");
  write("sub/deep/c.txt", std::string("\0\xff", 2));
  write("empty.txt", "");
  const IndexFiles files = prepare();
  EXPECT_EQ(texts(files.train), (Texts{"one", "two", std::string("\0\xff", 2)}));
  EXPECT_EQ(files.train_documents, 3);
  EXPECT_EQ(files.train_tokens, 4 + 4 + 3);
  EXPECT_EQ(files.skipped_files, 1);
  EXPECT_TRUE(files.validation.empty());
}

TEST_F(PrepareIndex, LinksCountOnceAndDoNotLeadOut) {
  write("a.txt", "one");
  std::ofstream(root_ / "outside.txt") << "secret";
  fs::create_symlink("a.txt", root_ / "text/again.txt");
  fs::create_symlink("nowhere", root_ / "text/broken.txt");
  fs::create_symlink("../outside.txt", root_ / "text/out.txt");
  fs::create_directory_symlink(".", root_ / "text/loop");
  data_.train.push_back({"text/a.txt"});
  const IndexFiles files = prepare();
  EXPECT_EQ(texts(files.train), Texts{"one"});
  EXPECT_EQ(files.skipped_files, 2);
}

TEST_F(PrepareIndex, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(prepare_error().code, ExitCode::kUnusable);  // no file at all
  EXPECT_NE(prepare_error().message.find("'text/**'"), std::string::npos);
  write("empty.txt", "");
  EXPECT_EQ(prepare_error().code, ExitCode::kUnusable);  // nothing left after empty files
  data_.train = {{"text"}};
  EXPECT_NE(prepare_error().hint.find("text/**"), std::string::npos);
  data_.train = {{"text/missing.txt"}};
  EXPECT_NE(prepare_error().message.find("missing.txt"), std::string::npos);
  data_.train = {{"/dev/null"}};
  EXPECT_NE(prepare_error().message.find("not a regular file"), std::string::npos);
  data_.tokenizer = "bpe";
  EXPECT_EQ(prepare_error().code, ExitCode::kUsage);
}

TEST_F(PrepareIndex, UnreadableFileIsNamed) {
  write("locked.txt", "text");
  ::chmod((root_ / "text/locked.txt").c_str(), 0);
  ::chmod(root_.c_str(), 0777);
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }  // root reads everything
  const Error error = prepare_error();
  if (user == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(error.code, ExitCode::kUnusable);
  EXPECT_NE(error.message.find("locked.txt"), std::string::npos);
}

TEST_F(PrepareIndex, CacheThatCannotBeMadeNamesTheRemedy) {
  write("a.txt", "one");
  data_.cache = "/proc/no/cache";
  const Error error = prepare_error();
  EXPECT_EQ(error.code, ExitCode::kEnvironment);
  EXPECT_NE(error.hint.find("data.cache"), std::string::npos);
}

TEST_F(PrepareIndex, AFullDiskLeavesNothingHalfWritten) {
  write("a.txt", std::string(100'000, 'x'));
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{50'000, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Error error = prepare_error();
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(error.code, ExitCode::kEnvironment);
  for (const auto& entry : fs::directory_iterator(root_ / "cache"))
    EXPECT_EQ(entry.path().filename(), "lock");
  EXPECT_EQ(prepare().train_documents, 1);
}

// Same path, size and time: trusted unread. Another time: read, and the same content is the same
// index.
TEST_F(PrepareIndex, ASecondCallReadsNothing) {
  write("a.txt", "one");
  const IndexFiles first = prepare();
  const fs::path source = root_ / "text/a.txt";
  const auto time = fs::last_write_time(source);
  write("a.txt", "two");
  fs::last_write_time(source, time);
  EXPECT_EQ(prepare().train_hash, first.train_hash);
  fs::last_write_time(source, time + std::chrono::seconds(1));
  const IndexFiles changed = prepare();
  EXPECT_NE(changed.train_hash, first.train_hash);
  EXPECT_EQ(texts(changed.train), Texts{"two"});
}

TEST_F(PrepareIndex, ValidationSplitDependsOnContentAlone) {
  data_.validation_fraction = 0.3;
  write_many(60);
  const IndexFiles files = prepare();
  const Texts train = texts(files.train), validation = texts(files.validation);
  std::set<std::string> all(train.begin(), train.end());
  all.insert(validation.begin(), validation.end());
  EXPECT_EQ(all.size(), 60u);
  EXPECT_EQ(train.size() + validation.size(), 60u);
  EXPECT_NEAR(static_cast<double>(validation.size()), 18, 12);  // 3.4 sigma
  for (int i = 0; i < 60; ++i)
    fs::rename(root_ / "text" / fmt::format("f{}", i),
               root_ / "text" / fmt::format("{}", 97 * i % 61));
  const Texts renamed = texts(prepare().validation);
  EXPECT_EQ((std::set(renamed.begin(), renamed.end())),
            (std::set(validation.begin(), validation.end())));
}

TEST_F(PrepareIndex, AFractionThatLeavesOneSideEmptyIsRefused) {
  data_.validation_fraction = 0.5;
  write("a.txt", "one");
  EXPECT_NE(prepare_error().message.find("validation_fraction"), std::string::npos);
}

TEST_F(PrepareIndex, NamedValidationFilesAreNotTrainedOn) {
  write("a.txt", "one");
  write("held/b.txt", "two");
  data_.validation = {{"text/held/*"}};
  const IndexFiles files = prepare();
  EXPECT_EQ(texts(files.train), Texts{"one"});
  EXPECT_EQ(texts(files.validation), Texts{"two"});
}

TEST_F(PrepareIndex, MaxDocumentsTakesTheFirst) {
  write("a.txt", "one");
  write("b.txt", "two");
  data_.max_documents = 1;
  EXPECT_EQ(texts(prepare().train), Texts{"one"});
}

TEST_F(PrepareIndex, DamagedIndexIsRefusedAndBuiltAgain) {
  write("a.txt", "a longer text");
  const std::string path = prepare().train;
  for (const char* suffix : {".bin", ".idx"}) {
    fs::resize_file(path + suffix, 10);
    const Error error = error_of([&] { open_index(path); });
    EXPECT_EQ(error.code, ExitCode::kUnusable);
    EXPECT_NE(error.message.find(path), std::string::npos);
    EXPECT_EQ(texts(prepare().train), Texts{"a longer text"});
    fs::remove(path + suffix);
    EXPECT_EQ(error_of([&] { open_index(path); }).code, ExitCode::kUnusable);
    EXPECT_EQ(texts(prepare().train), Texts{"a longer text"});
  }
}

TEST_F(PrepareIndex, WhatADeadBuilderLeftIsRemoved) {
  write("a.txt", "one");
  fs::create_directory(root_ / "cache");
  std::ofstream(root_ / "cache/0123.bin.tmp-77") << "half";
  prepare();
  EXPECT_FALSE(fs::exists(root_ / "cache/0123.bin.tmp-77"));
}

TEST_F(PrepareIndex, ManyProcessesAtOnceAgree) {
  write_many(200);
  data_.validation_fraction = 0.2;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const IndexFiles files = prepare();
        ::_exit(texts(files.train).size() + texts(files.validation).size() == 200 ? 0 : 1);
      } catch (const EngineError&) {
        ::_exit(2);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (const auto& entry : fs::directory_iterator(root_ / "cache"))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_F(PrepareIndex, ARunKeepsTheIndexOfItsCheckpoint) {
  write("a.txt", "one");
  const IndexFiles first = prepare();
  const auto reopen = [&] { return reopen_index(data_, root_.string(), first.train_hash, ""); };
  EXPECT_FALSE(reopen().sources_changed);

  write("b.txt", "two");
  EXPECT_TRUE(reopen().sources_changed);
  EXPECT_EQ(texts(reopen().train), Texts{"one"});

  fs::remove(first.train + ".bin");
  EXPECT_EQ(error_of(reopen).code, ExitCode::kUnusable);
  fs::remove(root_ / "text/b.txt");
  EXPECT_EQ(texts(reopen().train), Texts{"one"});  // built again from the same content
}

// What the planner reads: inputs, so a byte document of n bytes counts n.
TEST_F(PrepareIndex, LeavesTheLengthsOfItsDocuments) {
  write("a", "abc");
  write("b", "xyz");
  write("c", std::string(40, 'c'));
  const IndexFiles files = prepare();
  const std::string path = (root_ / "cache" / lengths_name(data_, root_.string())).string();
  const auto kept = [&] {
    const auto bytes = read_whole(path);
    return *lengths_from_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  const std::vector<LengthCount> expected{{3, 2}, {40, 1}};
  EXPECT_EQ(kept(), (DocumentLengths{files.train_hash, {expected}}));
  std::ofstream(path) << "damaged";
  prepare();
  EXPECT_EQ(kept().sources.front(), expected);
  write("d", "defgh");
  const std::string now = prepare().train_hash;
  EXPECT_EQ(kept().content_hash, now);
  EXPECT_EQ(kept().sources.front().size(), 3u);
}

recipe::Data in(const std::string& cache) {
  recipe::Data data;
  data.cache = cache;
  return data;
}

TEST(CacheFolder, ConfiguredThenXdgThenHome) {
  EXPECT_EQ(cache_folder(in("c"), "/r"), "/r/c");
  EXPECT_EQ(cache_folder(in("/c"), "/r"), "/c");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(cache_folder(in(""), "/r"), "/x/ptrain/index");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(cache_folder(in(""), "/r"), "/h/.cache/ptrain/index");
  ::unsetenv("HOME");
  EXPECT_THROW(cache_folder(in(""), "/r"), EngineError);
}

}  // namespace
}  // namespace ptrain::data
