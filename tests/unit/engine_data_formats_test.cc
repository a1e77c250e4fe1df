// What each format of text and tokens becomes in the index, and what of it is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/base/engine_error.h"
#include "engine/data/index.h"
#include "engine/data/loader.h"
#include "engine/data/vocabulary.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;

class Formats : public testing::Test {
 protected:
  Formats() {
    std::string name = (fs::temp_directory_path() / "ptrain-formats-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    data_.cache = "cache";
  }
  ~Formats() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  std::shared_ptr<const Index> index_of(const std::string& name) {
    data_.train = {{name}};
    return open_index(prepare_index(data_, root_.string()).train);
  }
  std::string refusal(const std::string& name) {
    try {
      index_of(name);
    } catch (const EngineError& error) {
      EXPECT_FALSE(error.error().hint.empty());
      return error.error().message;
    }
    ADD_FAILURE() << name << " is not refused";
    return "";
  }

  fs::path root_;
  recipe::Data data_;
};

using Numbers = std::vector<std::uint32_t>;

Numbers tokens_of(const Index& index, std::int64_t document) {
  Numbers numbers;
  const Tokens tokens = index.document(document);
  for (std::int64_t i = 0; i < tokens.size(); ++i) numbers.push_back(tokens[i]);
  return numbers;
}

std::string text_of(const Index& index, std::int64_t document) {
  std::string text;
  for (const std::uint32_t token : tokens_of(index, document))
    text += token == static_cast<std::uint32_t>(kByteEos) ? '$' : static_cast<char>(token);
  return text;
}

// The document with every token that is no target as a dot.
std::string learned(const Index& index, std::int64_t document) {
  std::string text = text_of(index, document);
  for (const TokenRange& range : index.silent(document))
    for (std::int64_t i = range.begin; i < range.end; ++i) text[static_cast<std::size_t>(i)] = '.';
  return text;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST_F(Formats, ALineOfJsonIsADocument) {
  write("a.jsonl", R"({"text": "one"}

{"prompt": "2+2=", "completion": "4"}
{"prompt": "hi", "messages": [{"role": "user", "content": "hi"}, )"
                   R"({"role": "assistant", "content": "yo"}]})");
  const auto index = index_of("a.jsonl");
  ASSERT_EQ(index->num_documents(), 3);
  EXPECT_EQ(text_of(*index, 0), "one$");
  EXPECT_EQ(learned(*index, 0), "one$");
  EXPECT_EQ(text_of(*index, 1), "2+2=4$");
  EXPECT_EQ(learned(*index, 1), "....4$");
  EXPECT_EQ(text_of(*index, 2),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n$");
  EXPECT_EQ(learned(*index, 2), std::string(52, '.') + "yo<|im_end|>.$");
}

TEST_F(Formats, ALineIsOneDocument) {
  for (const char* line :
       {R"({"text": "a", "prompt": "b", "completion": "c"})",
        R"({"text": "a", "messages": [{"role": "user", "content": "b"}]})",
        R"({"completion": "a", "messages": [{"role": "user", "content": "b"}]})"}) {
    write("a.jsonl", line);
    EXPECT_NE(refusal("a.jsonl").find("a.jsonl:1: it has more than one of"), std::string::npos);
  }
}

TEST_F(Formats, AFileThatIsNamedIsNotEmpty) {
  write("good.txt", "text");
  for (const char* bytes : {"", "\n \n"}) {
    write("a.jsonl", bytes);
    EXPECT_NE(refusal("a.jsonl").find("a.jsonl"), std::string::npos);
    data_.train = {{"good.txt"}, {"a.jsonl"}};
    EXPECT_THROW(prepare_index(data_, root_.string()), EngineError);
  }
}

TEST_F(Formats, AFileOfBlankLinesThatAPatternFindsIsLeftOut) {
  write("a.jsonl", "\n \t\r\n");
  write("b.jsonl", "{\"text\": \"a\"}\n");
  data_.train = {{"*.jsonl"}};
  const IndexFiles files = prepare_index(data_, root_.string());
  EXPECT_EQ(files.train_documents, 1);
  EXPECT_EQ(files.skipped_files, 1);
  write("c.jsonl", std::string("\n\0", 2));
  EXPECT_THROW(prepare_index(data_, root_.string()), EngineError);
}

// As often as they come: a row of two tokens holds "a" with its end, but not "long".
TEST_F(Formats, DocumentsThatComeTwiceAreCutTwice) {
  write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"long\"}\n");
  const auto index = index_of("a.jsonl");
  EXPECT_EQ(count_cut(*index, {0, 1}, 2), 1);
  EXPECT_EQ(count_cut(*index, {1, 0, 1, 0}, 2), 2);
  EXPECT_EQ(count_cut(*index, {0, 1}, 4), 0);
}

TEST_F(Formats, AnEndTokenNeedsAFileThatItEnds) {
  write("a.txt", "text");
  data_.end_token = 10;
  EXPECT_NE(refusal("a.txt").find("data.end_token is given"), std::string::npos);
}

Error refusal_of(const Index& train, const Index* validation, const recipe::Recipe& recipe) {
  try {
    check_vocabulary(train, validation, recipe);
  } catch (const EngineError& error) {
    return error.error();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST_F(Formats, ATokenBeyondTheVocabularyHasAPlace) {
  data_.tokenizer = "none";
  data_.end_token = 9;
  write("a.bin", raw<std::uint16_t>({1, 9, 2, 9}));
  write("b.bin", raw<std::uint16_t>({1, 9, 2, 9, 3, 300, 9}));
  data_.train = {{"a.bin"}, {"b.bin"}};
  const auto index = open_index(prepare_index(data_, root_.string()).train);
  recipe::Recipe recipe;
  recipe.data = data_;
  recipe.model.vocab_size = 301;
  EXPECT_NO_THROW(check_vocabulary(*index, index.get(), recipe));
  recipe.model.vocab_size = 300;
  const Error error = refusal_of(*index, nullptr, recipe);
  EXPECT_EQ(error.message,
            "the data holds tokens up to 300, but the model has 300; the first beyond is in "
            "document 3 of those taken from b.bin");
  EXPECT_NE(error.hint.find("model.vocab_size"), std::string::npos);
  recipe.model.hf = "/models/own";
  EXPECT_NE(refusal_of(*index, nullptr, recipe).hint.find("--tokenizer /models/own/tokenizer.json"),
            std::string::npos);

  data_.train = {{"a.bin"}};
  recipe.data.validation = {{"a.bin"}, {"b.bin"}};
  const auto small = open_index(prepare_index(data_, root_.string()).train);
  EXPECT_NE(refusal_of(*small, index.get(), recipe).message.find("taken from b.bin"),
            std::string::npos);
}

TEST_F(Formats, ARecipeMayLearnQuestionsToo) {
  write("a.jsonl", R"({"prompt": "2+2=", "completion": "4"})");
  data_.loss_on = recipe::LossOn::kAll;
  EXPECT_EQ(learned(*index_of("a.jsonl"), 0), "2+2=4$");
}

// "2+2=4" + EOS in a row of 8: five targets, of which the completion's and EOS count.
TEST_F(Formats, SilentTokensAreNoTargets) {
  write("a.jsonl", R"({"prompt": "2+2=", "completion": "4"})");
  Loader::Options options;
  options.sequence = 8;
  Loader loader(index_of("a.jsonl"), options);
  const MicroBatch batch = loader.next(0, 1, 1, 1).micro_batches.at(0);
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{kNoTarget, kNoTarget, kNoTarget, '4',
                                                      kByteEos, kNoTarget, kNoTarget, kNoTarget}));
  EXPECT_EQ(batch.num_targets(), 2);
  EXPECT_EQ(loader.position().tokens_total, 2);
}

TEST_F(Formats, ADamagedLineIsNamed) {
  for (const char* line :
       {"{", "[]", "3", R"({"txt": "a"})", R"({"text": 1})", R"({"prompt": "a"})",
        R"({"completion": "a"})", R"({"messages": []})", R"({"messages": [1]})",
        R"({"messages": [{"role": "user"}]})",
        R"({"messages": [{"role": "Assistant", "content": "a"}]})", "{\"text\": \"\xff\"}"}) {
    write("a.jsonl", std::string("{\"text\": \"good\"}\n\n") + line);
    EXPECT_NE(refusal("a.jsonl").find("a.jsonl:3: "), std::string::npos) << line;
  }
}

TEST_F(Formats, HeaderlessTokensEndAtTheEndToken) {
  data_.end_token = 50256;
  data_.tokenizer = "none";
  write("a.bin", raw<std::uint16_t>({5, 6, 50256, 7, 50256, 8, 9}));
  const auto index = index_of("a.bin");
  ASSERT_EQ(index->num_documents(), 3);
  EXPECT_EQ(tokens_of(*index, 0), (Numbers{5, 6, 50256}));
  EXPECT_EQ(tokens_of(*index, 1), (Numbers{7, 50256}));
  EXPECT_EQ(tokens_of(*index, 2), (Numbers{8, 9}));
  EXPECT_EQ(index->vocabulary(), 50257u);
}

std::string llmc(std::vector<std::int32_t> start, const std::string& tokens) {
  start.resize(256);
  return raw(start) + tokens;
}

TEST_F(Formats, TokensOfLlmcHaveAHeader) {
  data_.end_token = 128000;
  data_.tokenizer = "none";
  write("wide.bin", llmc({20240801, 7, 3}, raw<std::uint32_t>({128000, 70000, 1})));
  const auto wide = index_of("wide.bin");
  ASSERT_EQ(wide->num_documents(), 2);
  EXPECT_EQ(tokens_of(*wide, 0), (Numbers{128000}));
  EXPECT_EQ(tokens_of(*wide, 1), (Numbers{70000, 1}));
  data_.end_token = 50256;
  write("narrow.bin", llmc({20240520, 1, 2}, raw<std::uint16_t>({3, 4})));
  EXPECT_EQ(tokens_of(*index_of("narrow.bin"), 0), (Numbers{3, 4}));
  write("short.bin", llmc({20240520, 1, 3}, raw<std::uint16_t>({3, 4})));
  EXPECT_NE(refusal("short.bin").find("promises 3 tokens"), std::string::npos);
  write("old.bin", llmc({20240520, 2, 2}, raw<std::uint16_t>({3, 4})));
  EXPECT_NE(refusal("old.bin").find("version 2"), std::string::npos);
  write("odd.bin", "abc");
  EXPECT_NE(refusal("odd.bin").find("odd"), std::string::npos);
  data_.end_token = -1;
  EXPECT_NE(refusal("narrow.bin").find("where a document ends"), std::string::npos);
}

// Header and arrays of Megatron's .idx, written down after its format.
std::string megatron(std::uint8_t type, const std::vector<std::int32_t>& lengths,
                     const std::vector<std::int64_t>& offsets,
                     const std::vector<std::int64_t>& documents) {
  return std::string("MMIDIDX\0\0", 9) + raw<std::uint64_t>({1}) + static_cast<char>(type) +
         raw<std::uint64_t>({lengths.size(), documents.size()}) + raw(lengths) + raw(offsets) +
         raw(documents);
}

TEST_F(Formats, MegatronsDocumentsAreThoseOfItsTable) {
  data_.tokenizer = "none";
  write("a.bin", raw<std::uint16_t>({1, 2, 3, 4, 5}));
  write("a.idx", megatron(8, {2, 1, 2}, {0, 4, 6}, {0, 2, 3}));
  for (const char* name : {"a.bin", "a.idx", "a.*"}) {
    const auto index = index_of(name);
    ASSERT_EQ(index->num_documents(), 2);
    EXPECT_EQ(tokens_of(*index, 0), (Numbers{1, 2, 3}));
    EXPECT_EQ(tokens_of(*index, 1), (Numbers{4, 5}));
  }
  write("b.bin", raw<std::int32_t>({70000, 2, 3}));
  write("b.idx", megatron(4, {1, 2}, {0, 4}, {0, 1, 2}) + std::string(2, '\0'));  // with modes
  EXPECT_EQ(tokens_of(*index_of("b.bin"), 0), (Numbers{70000}));
  write("b.bin", raw<std::int32_t>({70000, -2, 3}));
  EXPECT_NE(refusal("b.bin").find("negative token"), std::string::npos);
}

TEST_F(Formats, ADamagedMegatronTableIsNamed) {
  data_.tokenizer = "none";
  write("a.bin", raw<std::uint16_t>({1, 2, 3, 4, 5}));
  const std::string good = megatron(8, {2, 1, 2}, {0, 4, 6}, {0, 2, 3});
  const std::vector<std::string> bad = {
      "",
      good.substr(0, 33),
      good.substr(0, good.size() - 1),
      "X" + good.substr(1),
      megatron(7, {2, 1, 2}, {0, 4, 6}, {0, 2, 3}),   // floating point
      megatron(8, {2, -1, 2}, {0, 4, 6}, {0, 2, 3}),  // a length below 0
      megatron(8, {2, 1, 2}, {0, 6, 6}, {0, 2, 3}),   // not end to end
      megatron(8, {2, 1, 3}, {0, 4, 6}, {0, 2, 3}),   // more tokens than the .bin
      megatron(8, {2, 1, 2}, {0, 4, 6}, {0, 2, 4}),   // documents beyond the sequences
      megatron(8, {2, 1, 2}, {0, 4, 6}, {1, 2, 3}),   // not from the first
      megatron(8, {2, 1, 2}, {0, 4, 6}, {0, 3, 2}),   // falling
      megatron(8, {2, 1, 2}, {0, 4, 6}, {}),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    write("a.idx", bad[i]);
    EXPECT_NE(refusal("a.bin").find(root_.string()), std::string::npos) << i;
  }
}

TEST_F(Formats, NothingIsNotWhatAMegatronTablePromises) {
  data_.tokenizer = "none";
  write("a.bin", raw<std::uint16_t>({1, 2, 3}));
  write("a.idx", megatron(8, {3}, {0}, {0, 1}));
  write("b.bin", "");
  write("b.idx", megatron(8, {3}, {0}, {0, 1}));
  EXPECT_NE(refusal("?.bin").find("b.bin: it has 0 bytes, but its .idx promises 3"),
            std::string::npos);
}

// Documents 1 2 3 and 4 5; no targets: 1 2, and 3 4 across both.
TEST_F(Formats, TokensOfMegatronMayBeSilent) {
  data_.tokenizer = "none";
  write("a.bin", raw<std::uint16_t>({1, 2, 3, 4, 5}));
  write("a.idx", megatron(8, {3, 2}, {0, 6}, {0, 1, 2}));
  const std::string loud = index_of("a.bin")->content_hash();
  write("a.silent", raw<std::uint64_t>({0, 2, 2, 4}));
  for (const char* name : {"a.bin", "a.idx", "a.silent", "a.*"}) {
    const auto index = index_of(name);
    EXPECT_EQ(index->silent(0), (std::vector<TokenRange>{{0, 2}, {2, 3}}));
    EXPECT_EQ(index->silent(1), (std::vector<TokenRange>{{0, 1}}));
    EXPECT_NE(index->content_hash(), loud);
  }
  data_.loss_on = recipe::LossOn::kAll;
  EXPECT_TRUE(index_of("a.bin")->silent(0).empty());
  data_.loss_on = recipe::LossOn::kAnswers;
  for (const std::vector<std::uint64_t>& bad :
       {std::vector<std::uint64_t>{0}, {2, 2}, {3, 1}, {0, 6}, {2, 3, 0, 1}, {~0ull, 1}}) {
    write("a.silent", raw(bad));
    EXPECT_NE(refusal("a.bin").find("a.silent"), std::string::npos);
  }
  fs::remove(root_ / "a.silent");
  EXPECT_EQ(index_of("a.bin")->content_hash(), loud);
}

TEST_F(Formats, TextNeedsATokenizerAndFormatsAreTakenAtTheirWord) {
  write("a.txt", "text");
  data_.tokenizer = "none";
  EXPECT_NE(refusal("a.txt").find("tokenizer is none"), std::string::npos);
  data_.tokenizer = "byte";
  write("b.txt", "{\"text\": \"x\"}\n");
  EXPECT_EQ(text_of(*index_of("b.txt"), 0), "{\"text\": \"x\"}\n$");
  data_.train = {{"b.txt", recipe::Format::kJsonl}};
  EXPECT_EQ(text_of(*open_index(prepare_index(data_, root_.string()).train), 0), "x$");
  data_.train = {{"b.txt", recipe::Format::kMegatron}};
  EXPECT_THROW(prepare_index(data_, root_.string()), EngineError);
}

TEST_F(Formats, DocumentsOfOneFileAreSplitAndCounted) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  write("a.jsonl", lines);
  data_.train = {{"a.jsonl"}};
  data_.validation_fraction = 0.2;
  const IndexFiles files = prepare_index(data_, root_.string());
  EXPECT_EQ(files.train_documents + files.validation_documents, 200);
  EXPECT_NEAR(static_cast<double>(files.validation_documents), 40, 20);
  data_.max_documents = 50;
  data_.validation_fraction = 0;
  EXPECT_EQ(prepare_index(data_, root_.string()).train_documents, 50);
}

}  // namespace
}  // namespace ptrain::data
