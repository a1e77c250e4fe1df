// Any bytes are refused as a token index, or they are the very bytes that its writer gives. Each
// input is also tried with its checksum set right, so that damage reaches the checks behind it.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/hash.h"
#include "core/data/index_format.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

void try_bytes(std::span<const std::byte> bytes) {
  const auto table = data::index_from_bytes(bytes);
  if (!table) {
    require(table.error().code == ExitCode::kUnusable && !table.error().message.empty());
    return;
  }
  const std::vector<std::byte> again = data::index_to_bytes(*table);
  require(again.size() == bytes.size());
  require(std::memcmp(again.data(), bytes.data(), bytes.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(input), size);
  try_bytes(bytes);
  if (size < sizeof(std::uint64_t)) return 0;
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  const std::size_t body = size - sizeof(std::uint64_t);
  const std::uint64_t hash = hash64(bytes.first(body));
  std::memcpy(sealed.data() + body, &hash, sizeof hash);
  try_bytes(sealed);
  return 0;
}
