#include "core/data/megatron_index.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace ptrain::data {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::size_t kHeaderBytes = 34;
constexpr std::uint8_t kInt32 = 4, kUint16 = 8;

tl::unexpected<Error> damaged(std::string reason) {
  return fail(ExitCode::kUnusable, std::move(reason));
}

// The arrays come unaligned.
template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Parts {
  std::size_t sequences = 0, documents = 0;  // documents: entries, one more than there are
  std::size_t lengths = kHeaderBytes, offsets = 0, bounds = 0;
  std::int64_t token_bytes = 0;
};

Result<Parts> parts_of(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return damaged("it is no index of Megatron");
  if (load<std::uint64_t>(bytes, 9) != 1) return damaged("its version is not 1");
  Parts parts;
  const auto code = load<std::uint8_t>(bytes, 17);
  if (code != kInt32 && code != kUint16)
    return damaged(
        fmt::format("its tokens have type {}; known are 4 (int32) and 8 (uint16)", code));
  parts.token_bytes = code == kUint16 ? 2 : 4;
  const auto sequences = load<std::uint64_t>(bytes, 18), documents = load<std::uint64_t>(bytes, 26);
  const std::uint64_t most = bytes.size() / 8;
  if (sequences > most || documents > most)
    return damaged("it promises more sequences than it can hold");
  const std::uint64_t without_modes = kHeaderBytes + sequences * 12 + documents * 8;
  if (bytes.size() != without_modes && bytes.size() != without_modes + sequences)
    return damaged(fmt::format("it has {} bytes, but {} sequences and {} documents need {}",
                               bytes.size(), sequences, documents, without_modes));
  parts.sequences = static_cast<std::size_t>(sequences);
  parts.documents = static_cast<std::size_t>(documents);
  parts.offsets = parts.lengths + 4 * parts.sequences;
  parts.bounds = parts.offsets + 8 * parts.sequences;
  return parts;
}

// Where each sequence begins, in tokens, and the end of the last.
Result<std::vector<std::int64_t>> sequence_begins(std::span<const std::byte> bytes,
                                                  const Parts& parts) {
  std::vector<std::int64_t> begins{0};
  for (std::size_t i = 0; i < parts.sequences; ++i) {
    const auto length = load<std::int32_t>(bytes, parts.lengths + 4 * i);
    if (length < 0) return damaged(fmt::format("sequence {} has the length {}", i, length));
    if (load<std::int64_t>(bytes, parts.offsets + 8 * i) != begins.back() * parts.token_bytes)
      return damaged(fmt::format("sequence {} does not begin where the one before it ends", i));
    begins.push_back(begins.back() + length);
  }
  return begins;
}

}  // namespace

Result<MegatronIndex> megatron_index_from_bytes(std::span<const std::byte> bytes) {
  PTRAIN_TRY(const Parts parts, parts_of(bytes));
  PTRAIN_TRY(const std::vector<std::int64_t> begins, sequence_begins(bytes, parts));
  MegatronIndex index{parts.token_bytes, {0}};
  std::int64_t before = 0;
  for (std::size_t i = 0; i < parts.documents; ++i) {
    const auto bound = load<std::int64_t>(bytes, parts.bounds + 8 * i);
    if (bound < before || bound > static_cast<std::int64_t>(parts.sequences) ||
        (i == 0 && bound != 0))
      return damaged(fmt::format("document {} begins at sequence {}", i, bound));
    before = bound;
    const std::int64_t begin = begins[static_cast<std::size_t>(bound)];
    if (begin > index.begin.back()) index.begin.push_back(begin);
  }
  if (parts.documents == 0 || before != static_cast<std::int64_t>(parts.sequences))
    return damaged("its documents do not hold all sequences");
  return index;
}

}  // namespace ptrain::data
