// tests/fixtures/data/make_sentencepiece.py made models and expectations with Python's package.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/data/sentencepiece_facts.h"
#include "engine/base/engine_error.h"
#include "engine/data/index.h"
#include "engine/data/tokenizer.h"
#include "engine/data/utf8.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::uint32_t>;

const fs::path kFixtures = fs::path(std::getenv("PTRAIN_SOURCE_DIR")) / "tests/fixtures/data";

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const nlohmann::json& expected() {
  static const auto all = nlohmann::json::parse(read(kFixtures / "expected.json"));
  return all;
}

const nlohmann::json& case_of(const char* model, const std::string& text) {
  for (const auto& one : expected().at(model).at("texts"))
    if (one.at("text") == text) return one;
  throw std::runtime_error("no such text: " + text);
}

recipe::Data data_with(const std::string& file) {
  recipe::Data data;
  data.tokenizer = "sentencepiece";
  data.tokenizer_file = file;
  return data;
}

std::unique_ptr<Tokenizer> open(const std::string& name) {
  return open_tokenizer(data_with(name), kFixtures.string());
}

Numbers encoded(const Tokenizer& tokenizer, const std::string& text, bool is_first) {
  Numbers tokens;
  tokenizer.encode({text, is_first, "a.txt"}, tokens);
  return tokens;
}

TEST(SentencePiece, TokensAreThoseOfPythonsPackage) {
  for (const char* name : {"unigram", "bpe"}) {
    const auto tokenizer = open(fmt::format("{}.model", name));
    const auto& model = expected().at(name);
    EXPECT_EQ(tokenizer->num_tokens(), model.at("num_pieces").get<std::uint32_t>());
    EXPECT_EQ(tokenizer->end(), model.at("eos").get<std::uint32_t>());
    for (const auto& one : model.at("texts")) {
      const auto text = one.at("text").get<std::string>();
      const auto ids = one.at("ids").get<Numbers>();
      EXPECT_EQ(encoded(*tokenizer, text, true), ids) << name << ": " << text;
      EXPECT_EQ(encoded(*tokenizer, text, false), one.at("later_ids").get<Numbers>())
          << name << ": " << text;
      EXPECT_EQ(tokenizer->decode({ids.begin(), ids.end()}), one.at("decoded").get<std::string>());
    }
  }
}

TEST(SentencePiece, TextComesBackFromItsTokens) {
  const auto tokenizer = open("unigram.model");
  for (const auto& one : expected().at("unigram").at("texts")) {
    const auto text = one.at("text").get<std::string>();
    const Numbers tokens = encoded(*tokenizer, text, true);
    EXPECT_EQ(tokenizer->decode({tokens.begin(), tokens.end()}), text);
  }
  EXPECT_EQ(tokenizer->decode({100000, -1}), "");  // padding of the vocabulary
}

TEST(SentencePiece, RowsAreFilledByItsPaddingOrItsEnd) {
  EXPECT_EQ(open("bpe.model")->pad(), expected().at("bpe").at("pad").get<std::uint32_t>());
  const auto unigram = open("unigram.model");
  EXPECT_EQ(unigram->pad(), unigram->end());
}

TEST(SentencePiece, APlanKnowsWhatTheLibraryKnows) {
  for (const char* name : {"unigram", "bpe", "no_end"}) {
    const std::string bytes = read(kFixtures / fmt::format("{}.model", name));
    const auto facts = sentencepiece_facts(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->num_pieces, expected().at(name).at("num_pieces").get<std::int64_t>());
    EXPECT_EQ(facts->eos, expected().at(name).at("eos").get<std::int64_t>());
  }
}

class SentencePieceIndex : public testing::Test {
 protected:
  SentencePieceIndex() {
    std::string name = (fs::temp_directory_path() / "ptrain-pieces-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::copy_file(kFixtures / "unigram.model", root_ / "a.model");
    data_ = data_with("a.model");
    data_.cache = "cache";
  }
  ~SentencePieceIndex() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    data_.train = {{name}};
  }
  std::shared_ptr<const Index> index() const {
    return open_index(prepare_index(data_, root_.string()).train);
  }
  Error refusal() const {
    try {
      index();
    } catch (const EngineError& error) {
      EXPECT_FALSE(error.error().hint.empty());
      return error.error();
    }
    ADD_FAILURE() << "not refused";
    return {};
  }
  static Numbers tokens_of(const Index& index) {
    Numbers numbers;
    for (std::int64_t i = 0; i < index.document(0).size(); ++i)
      numbers.push_back(index.document(0)[i]);
    return numbers;
  }
  static Numbers joined(std::vector<nlohmann::json> parts) {
    Numbers all;
    for (const auto& part : parts) {
      const auto ids = part.get<Numbers>();
      all.insert(all.end(), ids.begin(), ids.end());
    }
    all.push_back(2);
    return all;
  }

  fs::path root_;
  recipe::Data data_;
};

TEST_F(SentencePieceIndex, ADocumentIsItsPiecesAndAnEnd) {
  write("a.txt", "Zwölf großen");
  const auto found = index();
  EXPECT_EQ(tokens_of(*found), joined({case_of("unigram", "Zwölf großen").at("ids")}));
  EXPECT_EQ(found->vocabulary(), expected().at("unigram").at("num_pieces").get<std::uint32_t>());
  EXPECT_TRUE(found->silent(0).empty());
}

// A file is read in pieces of 256 KiB: a character and a word lie across their edge.
TEST_F(SentencePieceIndex, PiecesOfAFileAreOneText) {
  std::string text(262'143, 'a');
  text += "ö großen";
  write("a.txt", text);
  const Numbers tokens = tokens_of(*index());
  std::vector<std::int32_t> ids(tokens.begin(), tokens.end() - 1);
  EXPECT_EQ(open("unigram.model")->decode(ids), text);
}

TEST_F(SentencePieceIndex, AnswersAreTokenisedAfterQuestions) {
  write("a.jsonl", R"({"prompt": "The quick fox", "completion": "мягких булок"})");
  const auto& prompt = case_of("unigram", "The quick fox").at("ids");
  const auto& completion = case_of("unigram", "мягких булок").at("later_ids");
  const auto answers = index();
  EXPECT_EQ(tokens_of(*answers), joined({prompt, completion}));
  EXPECT_EQ(answers->silent(0),
            (std::vector<TokenRange>{{0, static_cast<std::int64_t>(prompt.size())}}));
  data_.loss_on = recipe::LossOn::kAll;
  const auto all = index();
  EXPECT_EQ(tokens_of(*all), tokens_of(*answers));
  EXPECT_TRUE(all->silent(0).empty());
  EXPECT_NE(all->content_hash(), answers->content_hash());
}

TEST_F(SentencePieceIndex, AnotherTokenizerIsAnotherIndex) {
  write("a.txt", "The quick fox");
  const std::string hash = index()->content_hash();
  fs::copy_file(kFixtures / "bpe.model", root_ / "a.model", fs::copy_options::overwrite_existing);
  EXPECT_NE(index()->content_hash(), hash);
}

TEST_F(SentencePieceIndex, ARunKeepsItsTokenizer) {
  write("a.txt", "The quick fox");
  data_ = with_tokenizer_hash(data_, root_.string());
  const IndexFiles files = prepare_index(data_, root_.string());
  fs::copy_file(kFixtures / "bpe.model", root_ / "a.model", fs::copy_options::overwrite_existing);
  try {
    reopen_index(data_, root_.string(), files.train_hash, "");
    ADD_FAILURE() << "another tokenizer is taken";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kUnusable);
    EXPECT_NE(error.error().message.find("not the one of this run"), std::string::npos);
  }
}

TEST_F(SentencePieceIndex, DamagedFilesAreNamed) {
  write("a.txt", "The quick fox");
  const std::string good = read(root_ / "a.model");
  const std::string place = (root_ / "a.model").string();
  for (const std::string& bad : {std::string(), std::string("no model"), good.substr(0, 100),
                                 good.substr(0, good.size() - 30)}) {
    std::ofstream(root_ / "a.model", std::ios::binary) << bad;
    EXPECT_NE(refusal().message.find(place), std::string::npos) << bad.size();
    EXPECT_FALSE(sentencepiece_facts(std::as_bytes(std::span(bad)))) << bad.size();
  }
  fs::remove(root_ / "a.model");
  EXPECT_NE(refusal().message.find("missing"), std::string::npos);
  fs::copy_file(kFixtures / "no_end.model", root_ / "a.model");
  EXPECT_NE(refusal().message.find("no end of sentence"), std::string::npos);
}

TEST_F(SentencePieceIndex, TextThatIsNotUtf8IsNamed) {
  write("a.txt", "good \xff bad");
  EXPECT_NE(refusal().message.find("a.txt: the text is not UTF-8 at its byte 5"),
            std::string::npos);
}

// Table 3-7 of the Unicode standard: well-formed sequences at their edges, and those beside them.
TEST(Utf8, Edges) {
  for (const char* good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(first_not_utf8(good), -1) << good;
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xc2 ", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xe0\xa0", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"})
    EXPECT_EQ(first_not_utf8(std::string("ok") + bad), 2) << bad;
}

}  // namespace
}  // namespace ptrain::data
