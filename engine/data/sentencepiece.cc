#include "engine/data/sentencepiece.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "engine/base/engine_error.h"
#include "engine/data/utf8.h"

// The only user of the library.
namespace ptrain::data {
namespace {

using sentencepiece::SentencePieceProcessor;

// A protocol buffer goes on where another ends; of a field that comes twice the last one counts.
// This is ModelProto{normalizer_spec {add_dummy_prefix: false}}.
constexpr std::string_view kNoBlankBefore("\x1a\x02\x18\x00", 4);

[[noreturn]] void refuse(const std::string& path, const std::string& reason,
                         const std::string& hint) {
  throw EngineError(ExitCode::kUnusable, fmt::format("the tokenizer {}: {}", path, reason), hint);
}

void load(std::string_view model, const std::string& path, SentencePieceProcessor& processor) {
  const auto status = processor.LoadFromSerializedProto({model.data(), model.size()});
  if (!status.ok())
    refuse(path, "it is no SentencePiece model, or is cut short",
           "give the .model that SentencePiece wrote, or copy it again");
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view model, const std::string& path) {
    load(model, path, first_);
    load(std::string(model) + std::string(kNoBlankBefore), path, later_);
    if (first_.eos_id() < 0)
      refuse(path, "it has no end of sentence, which ends documents",
             "train it with one (--eos_id), or write tokens by scripts/prepare_data.py");
  }

  void encode(const TextPart& part, std::vector<std::uint32_t>& tokens) const override {
    // The library takes bytes that are none for a character of its own.
    if (const std::int64_t at = first_not_utf8(part.text); at >= 0)
      throw EngineError(ExitCode::kUnusable,
                        fmt::format("{}: the text is not UTF-8 at its byte {}", part.place, at),
                        "convert it to UTF-8, or leave it out of data");
    std::vector<int> ids;
    const auto& processor = part.is_first ? first_ : later_;
    const auto status = processor.Encode({part.text.data(), part.text.size()}, &ids);
    if (!status.ok())
      throw EngineError(ExitCode::kUnusable,
                        fmt::format("{}: SentencePiece: {}", part.place, status.message()),
                        "leave the document out of data");
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::string decode(const std::vector<std::int32_t>& tokens) const override {
    // Tokens beyond the pieces only pad the vocabulary.
    std::vector<int> pieces;
    for (const std::int32_t token : tokens)
      if (token >= 0 && token < first_.GetPieceSize()) pieces.push_back(token);
    return first_.DecodeIds(pieces);
  }
  std::uint32_t num_tokens() const override {
    return static_cast<std::uint32_t>(first_.GetPieceSize());
  }
  std::uint32_t end() const override { return static_cast<std::uint32_t>(first_.eos_id()); }
  std::uint32_t pad() const override {
    return first_.pad_id() >= 0 ? static_cast<std::uint32_t>(first_.pad_id()) : end();
  }
  bool takes_pieces() const override { return false; }

 private:
  SentencePieceProcessor first_, later_;  // parts of a document
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(std::string_view model, const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(model, path);
}

}  // namespace ptrain::data
