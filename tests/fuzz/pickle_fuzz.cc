// Any bytes are refused as a pickle, or read within bounds. Metadata that is accepted stays the
// same when it is written and read again, and names no file outside its folder.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/dcp/item.h"
#include "core/dcp/metadata.h"
#include "core/dcp/pickle.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

void try_metadata(std::span<const std::byte> bytes) {
  const auto metadata = dcp::read_metadata(bytes);
  if (!metadata) {
    require(metadata.error().code == ExitCode::kUnusable && !metadata.error().message.empty());
    return;
  }
  const auto again = dcp::read_metadata(dcp::write_metadata(*metadata));
  require(again && again->tensors.size() == metadata->tensors.size());
  for (const auto& [key, entry] : metadata->tensors) {
    require(again->tensors.at(key).chunks.size() == entry.chunks.size());
    for (const dcp::Chunk& chunk : entry.chunks) require(dcp::is_confined(chunk.location.file));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(input), size);
  try_metadata(bytes);
  if (const auto value = dcp::read_value(bytes)) {
    const auto again = dcp::read_value(dcp::write_value(*value));
    require(again.has_value());
  }
  (void)dcp::read_tensor(bytes);
  return 0;
}
