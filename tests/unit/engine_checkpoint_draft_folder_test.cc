#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/draft_folder.h"
#include "engine/checkpoint/tokenizer_files.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

class DraftFolders : public testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::temp_directory_path() / "draft-XXXXXX").string();
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string in_root(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories(fs::path(in_root(name)).parent_path());
    std::ofstream(in_root(name)) << text;
  }

  std::string root_;
};

TEST_F(DraftFolders, AppearWholeOrNotAtAll) {
  {
    const DraftFolder draft(in_root("out"));
    std::ofstream(draft.file("a")) << "a";
  }
  EXPECT_TRUE(fs::is_empty(root_));
  const DraftFolder draft(in_root("out"));
  std::ofstream(draft.file("a")) << "a";
  EXPECT_FALSE(fs::exists(in_root("out")));
  draft.publish();
  EXPECT_TRUE(fs::exists(in_root("out/a")));
  EXPECT_THROW(DraftFolder(in_root("out")), EngineError);
}

TEST_F(DraftFolders, RemoveWhatAKilledOneLeft) {
  write(".tmp-out-123/model.safetensors");
  write(".tmp-out-x/mine");
  write(".tmp-other-123/mine");
  write(".tmp-out-7/busy");
  const int busy = ::open(in_root(".tmp-out-7").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(busy, LOCK_EX | LOCK_NB), 0);  // somebody else fills it
  { const DraftFolder draft(in_root("out")); }
  EXPECT_FALSE(fs::exists(in_root(".tmp-out-123")));
  for (const char* name : {".tmp-out-x", ".tmp-other-123", ".tmp-out-7"})
    EXPECT_TRUE(fs::exists(in_root(name))) << name;
  ::close(busy);
}

TEST_F(DraftFolders, AreNotMadeByLinks) {
  write("elsewhere/precious");
  fs::create_directory_symlink(in_root("elsewhere"), in_root(".tmp-out-1"));
  { const DraftFolder draft(in_root("out")); }
  EXPECT_TRUE(fs::exists(in_root("elsewhere/precious")));
}

std::vector<std::string> names_of(const std::vector<TokenizerFile>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.name);
  return names;
}

TEST_F(DraftFolders, TokenizerFilesAreTheKnownOnes) {
  using Names = std::vector<std::string>;
  for (const char* name :
       {"tokenizer.json", "generation_config.json", "config.json", "pytorch.bin"})
    write(std::string("hf/") + name);
  fs::create_directories(in_root("hf/vocab.json"));  // no file
  write("texts/my.model");
  recipe::Recipe recipe;
  recipe.model.hf = in_root("hf");
  recipe.data.tokenizer = "none";
  EXPECT_EQ(names_of(tokenizer_files(recipe, "")),
            (Names{"tokenizer.json", "generation_config.json"}));
  EXPECT_EQ(missing_tokenizer(recipe, tokenizer_files(recipe, "")), "");
  recipe.data.tokenizer = "byte";  // it learned other tokens
  EXPECT_TRUE(tokenizer_files(recipe, "").empty());
  recipe.model.hf.clear();
  recipe.data.tokenizer = "sentencepiece";
  recipe.data.tokenizer_file = "texts/my.model";
  EXPECT_TRUE(tokenizer_files(recipe, "").empty());
  const auto files = tokenizer_files(recipe, root_);
  ASSERT_EQ(names_of(files), (Names{"tokenizer.model"}));
  EXPECT_EQ(files[0].from, in_root("texts/my.model"));
}

TEST_F(DraftFolders, ATokenizerThatIsNotFoundIsTold) {
  write("hf/tokenizer_config.json");
  recipe::Recipe recipe;
  recipe.data.tokenizer = "none";
  EXPECT_EQ(missing_tokenizer(recipe, {}), "");  // nobody knows where one would be
  recipe.model.hf = in_root("hf");
  EXPECT_EQ(
      missing_tokenizer(recipe, tokenizer_files(recipe, "")),
      "no tokenizer was found in " + in_root("hf") + ": copy the model's own into the folder");
  recipe.data.tokenizer = "byte";
  EXPECT_EQ(missing_tokenizer(recipe, {}), "");
  recipe.data.tokenizer = "sentencepiece";
  recipe.data.tokenizer_file = "my.model";
  EXPECT_NE(missing_tokenizer(recipe, {}), "");
}

}  // namespace
}  // namespace ptrain::checkpoint
