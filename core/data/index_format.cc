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
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kTokenBytes = 2;
constexpr std::size_t kHashChars = 32;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bytes;
  std::uint64_t num_documents;
  std::uint64_t num_tokens;
  std::uint64_t bin_hash;
  char content_hash[kHashChars];
};
static_assert(sizeof(Header) == 72);

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

Status check_header(const Header& header, std::size_t size) {
  if (std::string_view(header.magic, sizeof header.magic) != kMagic)
    return damaged("it is no token index");
  if (header.version != kVersion || header.token_bytes != kTokenBytes)
    return damaged("it has a version that this ptrain does not know");
  const std::uint64_t numbers = (size - sizeof(Header)) / 8;   // offsets and the final hash
  if (header.num_documents != numbers - 2 || size % 8 != 0)
    return damaged("its size does not agree with its number of documents");
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(header.content_hash, is_hex))
    return damaged("its content hash is not hexadecimal");
  return {};
}

Result<std::vector<std::int64_t>> load_offsets(const Header& header,
                                               std::span<const std::byte> bytes) {
  std::vector<std::int64_t> begin(static_cast<std::size_t>(header.num_documents) + 1);
  std::memcpy(begin.data(), bytes.data() + sizeof(Header), begin.size() * sizeof begin[0]);
  const bool rising = std::ranges::adjacent_find(begin, std::greater_equal<>()) == begin.end();
  if (begin.front() != 0 || !rising) return damaged("its documents do not follow each other");
  if (static_cast<std::uint64_t>(begin.back()) != header.num_tokens)
    return damaged("its number of tokens does not agree with its documents");
  return begin;
}

}  // namespace

std::vector<std::byte> index_to_bytes(const IndexTable& table) {
  Header header{};
  kMagic.copy(header.magic, kMagic.size());
  header.version = kVersion;
  header.token_bytes = kTokenBytes;
  header.num_documents = static_cast<std::uint64_t>(table.num_documents());
  header.num_tokens = static_cast<std::uint64_t>(table.num_tokens());
  header.bin_hash = table.bin_hash;
  table.content_hash.copy(header.content_hash, kHashChars);
  const std::size_t offset_bytes = table.begin.size() * sizeof table.begin[0];
  std::vector<std::byte> bytes(sizeof header + offset_bytes + sizeof(std::uint64_t));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, table.begin.data(), offset_bytes);
  const std::size_t body = sizeof header + offset_bytes;
  const std::uint64_t hash = hash64(std::span(bytes).first(body));
  std::memcpy(bytes.data() + body, &hash, sizeof hash);
  return bytes;
}

Result<IndexTable> index_from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) + 16) return damaged("it is too short");
  const auto header = load<Header>(bytes, 0);
  PTRAIN_CHECK(check_header(header, bytes.size()));
  const std::size_t body = bytes.size() - 8;
  if (load<std::uint64_t>(bytes, body) != hash64(bytes.first(body)))
    return damaged("its checksum does not match");
  PTRAIN_TRY(auto begin, load_offsets(header, bytes));
  return IndexTable{std::move(begin), header.bin_hash,
                    std::string(header.content_hash, kHashChars)};
}

}  // namespace ptrain::data
