#include "engine/data/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/data/documents.h"
#include "engine/data/encode.h"
#include "engine/data/token_writer.h"

namespace ptrain::data {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kLargestToken = 0x7ffffffe;
constexpr std::uint32_t kMostNarrow = 1 << 16;  // tokens that 2 bytes tell apart

// The documents of one file that belong to one side, as tokens.
class Encoding final : public DocumentSink {
 public:
  Encoding(const KnownFile& known, Side side, const Encoder& encoder, TokenWriter& writer)
      : known_(known),
        side_(side),
        encoder_(encoder),
        writer_(writer),
        width_(token_bytes(known.file)) {}

  void piece(Bytes bytes) override {
    hasher_.update(bytes);
    if (!ours()) return;
    if (needs_whole_document()) {
      document_.insert(document_.end(), bytes.begin(), bytes.end());
    } else if (is_text()) {
      tokens_.clear();
      encoder_.tokenizer->encode({as_text(bytes), true, known_.file.path}, tokens_);
      writer_.tokens(tokens_);
    } else {
      write(bytes);
    }
  }

  void silent(std::span<const TokenRange> ranges) override {
    hasher_.update(std::as_bytes(ranges));
    silent_.assign(ranges.begin(), ranges.end());
  }

  void end(std::int64_t number) override {
    if (next_ >= known_.documents.size() || hasher_.digest() != known_.documents[next_].hash)
      refuse_change();
    if (ours()) finish(number);
    hasher_ = Hasher64();
    document_.clear();
    ++next_;
  }

  void end_file() const {
    if (next_ != known_.documents.size()) refuse_change();
  }

 private:
  bool ours() const {
    return next_ < known_.documents.size() && known_.documents[next_].side == side_;
  }

  bool is_text() const { return known_.file.format == recipe::Format::kText; }
  bool needs_whole_document() const {
    return known_.file.format == recipe::Format::kJsonl ||
           (is_text() && !encoder_.tokenizer->takes_pieces());
  }
  static std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void refuse_change() const {
    throw EngineError(ExitCode::kUnusable,
                      "the data file " + known_.file.path + " changes while it is read",
                      "start again when nobody writes it");
  }

  void write(Bytes bytes) {
    const auto width = static_cast<std::size_t>(width_);
    tokens_.assign(bytes.size() / width, 0);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      std::memcpy(&tokens_[i], bytes.data() + i * width, width);
    if (!tokens_.empty() && std::ranges::max(tokens_) > kLargestToken)
      throw EngineError(
          ExitCode::kUnusable,
          fmt::format("{}: document {} holds a negative token", known_.file.path, next_ + 1),
          "write the file again with the tokens of a tokenizer");
    writer_.tokens(tokens_);
  }

  void finish(std::int64_t number) {
    fault::point("start.data.document");
    if (known_.file.format == recipe::Format::kJsonl) {
      const auto place = fmt::format("{}:{}", known_.file.path, number);
      const Encoded encoded = encode_json_line(document_, place, encoder_);
      writer_.tokens(encoded.tokens);
      writer_.silent(encoded.silent);
    } else if (is_text()) {
      tokens_.clear();
      if (needs_whole_document())
        encoder_.tokenizer->encode({as_text(document_), true, known_.file.path}, tokens_);
      tokens_.push_back(encoder_.tokenizer->end());
      writer_.tokens(tokens_);
    } else if (encoder_.loss_on == recipe::LossOn::kAnswers) {
      writer_.silent(silent_);
    }
    writer_.end_document();
  }

  const KnownFile& known_;
  Side side_;
  Encoder encoder_;
  TokenWriter& writer_;
  std::int64_t width_;
  std::size_t next_ = 0;
  Hasher64 hasher_;
  std::vector<std::byte> document_;
  std::vector<std::uint32_t> tokens_;
  std::vector<TokenRange> silent_;
};

bool holds(const KnownFile& file, Side side) {
  return std::ranges::any_of(file.documents,
                             [&](const KnownDocument& document) { return document.side == side; });
}

}  // namespace

void build_index(const recipe::Data& data, const Tokenizer* tokenizer,
                 const std::vector<KnownFile>& files, Side side, const NewIndex& index) {
  const bool wide = std::ranges::any_of(files, [&](const KnownFile& file) {
    return holds(file, side) && token_bytes(file.file) == 4;
  });
  const std::uint32_t least = tokenizer != nullptr ? tokenizer->num_tokens() : 1;
  TokenWriter writer(index.path, wide || least > kMostNarrow ? 4 : 2);
  writer.begin_source();
  std::size_t source = 0;
  for (const KnownFile& file : files) {
    if (!holds(file, side)) continue;
    for (; source < file.file.source; ++source) writer.begin_source();
    Encoding sink(file, side, {tokenizer, data.loss_on}, writer);
    read_documents(file.file, data.end_token, sink);
    sink.end_file();
  }
  writer.publish(index.content_hash, std::max(least, writer.largest() + 1),
                 tokenizer != nullptr ? tokenizer->pad() : 0);
}

}  // namespace ptrain::data
