#include "engine/data/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/hash.h"
#include "engine/base/engine_error.h"
#include "engine/data/file.h"
#include "engine/data/index.h"
#include "engine/data/sentencepiece.h"

namespace ptrain::data {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  void encode(const TextPart& part, std::vector<std::uint32_t>& tokens) const override {
    for (const char c : part.text) tokens.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(const std::vector<std::int32_t>& tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens)
      if (token < kByteEos) text.push_back(static_cast<char>(token));
    return text;
  }
  std::uint32_t num_tokens() const override { return kBytePad + 1; }
  std::uint32_t end() const override { return kByteEos; }
  std::uint32_t pad() const override { return kBytePad; }
  bool takes_pieces() const override { return true; }
};

struct TokenizerFile {
  std::string path;
  std::string bytes;
  std::string hash;
};

TokenizerFile read_file(const recipe::Data& data, const std::string& folder) {
  TokenizerFile file;
  file.path = (std::filesystem::path(folder) / data.tokenizer_file).lexically_normal().string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(file.path, error))
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("the tokenizer {} is missing, or no file", file.path),
                      "give its .model file as data.tokenizer_file, relative to the recipe");
  const auto bytes = read_whole(file.path);
  file.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  file.hash = hash128_hex(file.bytes);
  return file;
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const recipe::Data& data, const std::string& folder) {
  if (data.tokenizer == "none") return nullptr;
  if (data.tokenizer == "byte") return std::make_unique<ByteTokenizer>();
  if (data.tokenizer != "sentencepiece")
    throw EngineError(ExitCode::kUsage,
                      fmt::format("data.tokenizer: '{}' is not known", data.tokenizer),
                      "the tokenizers there are: byte, sentencepiece, none");
  const TokenizerFile file = read_file(data, folder);
  if (!data.tokenizer_hash.empty() && data.tokenizer_hash != file.hash)
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("the tokenizer {} is not the one of this run: its hash is {}, "
                                  "that of the run {}",
                                  file.path, file.hash, data.tokenizer_hash),
                      "bring back the file that the run began with");
  return open_sentencepiece(file.bytes, file.path);
}

recipe::Data with_tokenizer_hash(recipe::Data data, const std::string& folder) {
  if (data.tokenizer == "sentencepiece" && data.tokenizer_hash.empty())
    data.tokenizer_hash = read_file(data, folder).hash;
  return data;
}

}  // namespace ptrain::data
