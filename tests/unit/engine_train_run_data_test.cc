#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/engine_error.h"
#include "engine/train/run_data.h"

namespace ptrain::train {
namespace {

namespace fs = std::filesystem;

class OpenData : public testing::Test {
 protected:
  OpenData() {
    std::string name = (fs::temp_directory_path() / "ptrain-run-data-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    plan_.recipe_folder = root_.string();
    plan_.recipe.data.tokenizer = "none";
    plan_.recipe.data.end_token = 1;
    plan_.recipe.data.cache = "cache";
    plan_.recipe.data.train = {{"a.bin"}};
    plan_.recipe.model.vocab_size = 320;
  }
  ~OpenData() override { fs::remove_all(root_); }

  void write(const std::vector<std::uint16_t>& tokens) const {
    std::ofstream(root_ / "a.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(tokens.data()), std::ssize(tokens) * 2);
  }
  RunData open() const { return open_data(plan_, Progress{}, *world_); }

  fs::path root_;
  run::Plan plan_;
  std::unique_ptr<comm::Communicator> world_ = comm::make_single();
};

TEST_F(OpenData, TokensBeyondTheModelsVocabularyAreRefused) {
  write({5, 319, 1});
  EXPECT_EQ(open().train->vocabulary(), 320u);
  write({5, 320, 1, 2});
  try {
    open();
    ADD_FAILURE() << "not refused";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kUnusable);
    EXPECT_EQ(error.error().message,
              "the data holds tokens up to 320, but the model has 320; the first beyond is in "
              "document 1 of those taken from a.bin");
    EXPECT_NE(error.error().hint.find("model's tokenizer, or set model.vocab_size"),
              std::string::npos);
  }
}

// A tokenizer costs time and memory: only samples need it.
TEST_F(OpenData, ATokenizerIsOpenedForSamplesAlone) {
  write({5, 1});
  EXPECT_EQ(open().tokenizer, nullptr);
  plan_.recipe.data.tokenizer = "byte";
  plan_.recipe.validation.sample_tokens = 10;
  EXPECT_NE(open().tokenizer, nullptr);
}

}  // namespace
}  // namespace ptrain::train
