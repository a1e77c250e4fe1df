#include "engine/data/token_writer.h"

#include <algorithm>

namespace ptrain::data {
namespace {

constexpr fault::FilePoints kBinPoints{"start.data.bin.create", "start.data.bin.write",
                                       "start.data.bin.sync", "start.data.bin.rename"};
constexpr fault::FilePoints kIdxPoints{"start.data.idx.create", "start.data.idx.write",
                                       "start.data.idx.sync", "start.data.idx.rename"};

}  // namespace

TokenWriter::TokenWriter(const std::string& path, std::uint32_t token_bytes)
    : path_(path), file_(path + ".bin", kBinPoints) {
  table_.token_bytes = token_bytes;
  table_.begin = {0};
}

void TokenWriter::begin_source() { table_.sources.push_back(table_.num_documents()); }

template <class Stored>
void TokenWriter::write_as(std::span<const std::uint32_t> tokens) {
  std::vector<Stored> stored(tokens.size());
  std::ranges::transform(tokens, stored.begin(),
                         [](std::uint32_t token) { return static_cast<Stored>(token); });
  hasher_.update(std::as_bytes(std::span(stored)));
  file_.write(std::as_bytes(std::span(stored)));
}

void TokenWriter::tokens(std::span<const std::uint32_t> tokens) {
  if (tokens.empty()) return;
  largest_ = std::max(largest_, std::ranges::max(tokens));
  num_tokens_ += std::ssize(tokens);
  if (table_.token_bytes == 2) {
    write_as<std::uint16_t>(tokens);
  } else {
    write_as<std::uint32_t>(tokens);
  }
}

void TokenWriter::silent(const std::vector<TokenRange>& ranges) {
  const std::int64_t begin = table_.begin.back();
  for (const TokenRange& range : ranges)
    table_.silent.push_back({begin + range.begin, begin + range.end});
}

void TokenWriter::end_document() {
  if (num_tokens_ > table_.begin.back()) table_.begin.push_back(num_tokens_);
}

void TokenWriter::publish(const std::string& content_hash, std::uint32_t vocabulary,
                          std::uint32_t pad) {
  file_.publish();
  begin_source();
  table_.bin_hash = hasher_.digest();
  table_.content_hash = content_hash;
  table_.vocabulary = vocabulary;
  table_.pad = pad;
  NewFile file(path_ + ".idx", kIdxPoints);
  file.write(index_to_bytes(table_));
  file.publish();
}

}  // namespace ptrain::data
