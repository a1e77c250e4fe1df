#include "engine/data/contents.h"

#include <fmt/format.h>

#include "core/base/hash.h"
#include "core/data/tokenizer_identity.h"
#include "engine/base/engine_error.h"
#include "engine/data/documents.h"

namespace ptrain::data {
namespace {

class Hashing final : public DocumentSink {
 public:
  explicit Hashing(Side side) : side_(side) {}
  void piece(std::span<const std::byte> bytes) override {
    hasher_.update(bytes);
    bytes_ += std::ssize(bytes);
    total_ += std::ssize(bytes);
  }
  void silent(std::span<const TokenRange> ranges) override {
    hasher_.update(std::as_bytes(ranges));
  }
  void end(std::int64_t) override {
    documents.push_back({hasher_.digest(), bytes_, side_});
    hasher_ = Hasher64();
    bytes_ = 0;
  }
  std::int64_t total() const { return total_; }

  std::vector<KnownDocument> documents;

 private:
  Side side_;
  Hasher64 hasher_;
  std::int64_t bytes_ = 0;
  std::int64_t total_ = 0;
};

void read_side(const std::vector<SourceFile>& files, std::int64_t end_token, Side side,
               std::vector<KnownFile>& known) {
  for (const SourceFile& file : files) {
    Hashing sink(side);
    read_documents(file, end_token, sink);
    if (file.format == recipe::Format::kText && sink.total() != file.size)
      throw EngineError(ExitCode::kUnusable,
                        "the data file " + file.path + " changes while it is read",
                        "start again when nobody writes it");
    if (file.format == recipe::Format::kJsonl && sink.documents.empty())
      throw EngineError(ExitCode::kUnusable,
                        "the data file " + file.path + " holds no line with a document",
                        "bring its contents back, or leave it out of data");
    known.push_back({file, std::move(sink.documents)});
  }
}

// Calls `act` for each document that is to be trained on, in order.
template <class Act>
void for_train(std::vector<KnownFile>& files, const Act& act) {
  for (KnownFile& file : files)
    for (KnownDocument& document : file.documents)
      if (document.side == Side::kTrain) act(document);
}

std::int64_t count(const std::vector<KnownFile>& files, Side side) {
  std::int64_t count = 0;
  for (const KnownFile& file : files)
    for (const KnownDocument& document : file.documents) count += document.side == side ? 1 : 0;
  return count;
}

void leave_out_beyond(std::int64_t most, std::vector<KnownFile>& files) {
  std::int64_t taken = 0;
  for_train(files, [&](KnownDocument& document) {
    if (taken++ >= most) document.side = Side::kLeftOut;
  });
}

void split_off(double fraction, std::vector<KnownFile>& files) {
  for_train(files, [&](KnownDocument& document) {
    if (static_cast<double>(document.hash) * 0x1p-64 < fraction) document.side = Side::kValidation;
  });
  const std::int64_t train = count(files, Side::kTrain);
  const std::int64_t validation = count(files, Side::kValidation);
  if (train > 0 && validation > 0) return;
  throw EngineError(
      ExitCode::kUnusable,
      fmt::format("data.validation_fraction {} leaves {} documents to train on and {} to validate",
                  fraction, train, validation),
      "give more files, another fraction, or name the files under data.validation");
}

// Plain text is what most indexes are made of; only other formats are named.
const char* format_name(recipe::Format format) {
  switch (format) {
    case recipe::Format::kJsonl:
      return " jsonl";
    case recipe::Format::kBin:
      return " bin";
    case recipe::Format::kMegatron:
      return " megatron";
    case recipe::Format::kAuto:
    case recipe::Format::kText:
      break;
  }
  return "";
}

std::string content_hash(const recipe::Data& data, const std::vector<KnownFile>& files, Side side) {
  if (count(files, side) == 0) return "";
  std::string text = fmt::format("ptrain index 1, {} tokenizer\n", tokenizer_identity(data));
  std::size_t source = 0;
  for (const KnownFile& file : files) {
    for (; source < file.file.source; ++source) text += "next source\n";
    for (const KnownDocument& document : file.documents)
      if (document.side == side)
        text += fmt::format("{:016x} {}{}\n", document.hash, document.bytes,
                            format_name(file.file.format));
  }
  return hash128_hex(text);
}

}  // namespace

std::vector<KnownFile> read_contents(const recipe::Data& data, const Sources& sources) {
  std::vector<KnownFile> files;
  read_side(sources.train, data.end_token, Side::kTrain, files);
  if (data.max_documents > 0) leave_out_beyond(data.max_documents, files);
  if (data.validation.empty() && data.validation_fraction > 0)
    split_off(data.validation_fraction, files);
  read_side(sources.validation, data.end_token, Side::kValidation, files);
  if (count(files, Side::kTrain) == 0)
    throw EngineError(ExitCode::kUnusable, "data.train: the files hold no document",
                      "name files with text or tokens");
  if (!data.validation.empty() && count(files, Side::kValidation) == 0)
    throw EngineError(ExitCode::kUnusable, "data.validation: the files hold no document",
                      "name files with text or tokens");
  return files;
}

ContentHashes content_hashes(const recipe::Data& data, const std::vector<KnownFile>& files) {
  return {content_hash(data, files, Side::kTrain), content_hash(data, files, Side::kValidation)};
}

}  // namespace ptrain::data
