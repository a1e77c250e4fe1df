#include "core/data/index_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string_view>

#include "core/base/hash.h"

namespace ptrain::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic("PTRNIDX\0", 8);
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHashChars = 32;
constexpr std::uint64_t kNumber = sizeof(std::uint64_t);

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bytes;
  std::uint64_t num_documents;
  std::uint64_t num_tokens;
  std::uint64_t bin_hash;
  char content_hash[kHashChars];
  std::uint32_t vocabulary;
  std::uint32_t pad;
  std::uint64_t num_sources;
  std::uint64_t num_silent;
};
static_assert(sizeof(Header) == 96);
static_assert(sizeof(TokenRange) == 2 * kNumber);

// The bytes come unaligned.
template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

tl::unexpected<Error> damaged(std::string reason) {
  return fail(ExitCode::kUnusable, std::move(reason));
}

// Whether documents, sources and silent ranges are as many as the size says; no sum overflows.
bool size_agrees(const Header& header, std::size_t size) {
  if (size % kNumber != 0) return false;
  const std::uint64_t numbers = (size - sizeof(Header)) / kNumber;
  const std::uint64_t most = numbers;
  if (header.num_documents > most || header.num_sources > most || header.num_silent > most)
    return false;
  return header.num_documents + 1 + header.num_sources + 1 + 2 * header.num_silent + 1 == numbers;
}

Status check_header(const Header& header, std::size_t size) {
  if (std::string_view(header.magic, sizeof header.magic) != kMagic)
    return damaged("it is no token index");
  if (header.version != kVersion || (header.token_bytes != 2 && header.token_bytes != 4))
    return damaged("it has a version that this ptrain does not know");
  if (!size_agrees(header, size))
    return damaged("its size does not agree with its number of documents");
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(header.content_hash, is_hex))
    return damaged("its content hash is not hexadecimal");
  if (header.vocabulary > 1u << 31 || header.pad >= header.vocabulary)
    return damaged("its padding is outside its vocabulary");
  return {};
}

template <class T>
std::vector<T> load_all(std::span<const std::byte> bytes, std::size_t& at, std::uint64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  if (!values.empty()) std::memcpy(values.data(), bytes.data() + at, values.size() * sizeof(T));
  at += values.size() * sizeof(T);
  return values;
}

Status check_table(const Header& header, const IndexTable& table) {
  const auto& begin = table.begin;
  const bool rising = std::ranges::adjacent_find(begin, std::greater_equal<>()) == begin.end();
  if (begin.front() != 0 || !rising) return damaged("its documents do not follow each other");
  if (static_cast<std::uint64_t>(begin.back()) != header.num_tokens)
    return damaged("its number of tokens does not agree with its documents");
  const auto& sources = table.sources;
  if (sources.front() != 0 || !std::ranges::is_sorted(sources) ||
      sources.back() != table.num_documents())
    return damaged("its sources do not share its documents");
  std::int64_t end = 0;
  for (const TokenRange& range : table.silent) {
    if (range.begin < end || range.end <= range.begin)
      return damaged("its silent ranges do not follow each other");
    end = range.end;
  }
  if (end > begin.back()) return damaged("its silent ranges go beyond its tokens");
  return {};
}

template <class T>
void store(std::vector<std::byte>& bytes, std::size_t& at, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
  at += values.size() * sizeof(T);
}

}  // namespace

std::vector<std::byte> index_to_bytes(const IndexTable& table) {
  Header header{};
  kMagic.copy(header.magic, kMagic.size());
  header.version = kVersion;
  header.token_bytes = table.token_bytes;
  header.num_documents = static_cast<std::uint64_t>(table.num_documents());
  header.num_tokens = static_cast<std::uint64_t>(table.num_tokens());
  header.bin_hash = table.bin_hash;
  table.content_hash.copy(header.content_hash, kHashChars);
  header.vocabulary = table.vocabulary;
  header.pad = table.pad;
  header.num_sources = table.sources.size() - 1;
  header.num_silent = table.silent.size();
  const std::size_t numbers =
      table.begin.size() + table.sources.size() + 2 * table.silent.size() + 1;
  std::vector<std::byte> bytes(sizeof header + numbers * kNumber);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::size_t at = sizeof header;
  store(bytes, at, table.begin);
  store(bytes, at, table.sources);
  store(bytes, at, table.silent);
  const std::uint64_t hash = hash64(std::span<const std::byte>(bytes).first(at));
  std::memcpy(bytes.data() + at, &hash, sizeof hash);
  return bytes;
}

Result<IndexTable> index_from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) + 3 * kNumber) return damaged("it is too short");
  const auto header = load<Header>(bytes, 0);
  PTRAIN_CHECK(check_header(header, bytes.size()));
  const std::size_t body = bytes.size() - kNumber;
  if (load<std::uint64_t>(bytes, body) != hash64(bytes.first(body)))
    return damaged("its checksum does not match");
  IndexTable table;
  table.token_bytes = header.token_bytes;
  table.vocabulary = header.vocabulary;
  table.pad = header.pad;
  table.bin_hash = header.bin_hash;
  table.content_hash = std::string(header.content_hash, kHashChars);
  std::size_t at = sizeof header;
  table.begin = load_all<std::int64_t>(bytes, at, header.num_documents + 1);
  table.sources = load_all<std::int64_t>(bytes, at, header.num_sources + 1);
  table.silent = load_all<TokenRange>(bytes, at, header.num_silent);
  PTRAIN_CHECK(check_table(header, table));
  return table;
}

}  // namespace ptrain::data
