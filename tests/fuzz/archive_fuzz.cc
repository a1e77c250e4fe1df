// Any bytes are refused as an archive, or every record lies inside them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/dcp/archive.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  const std::span item(reinterpret_cast<const std::byte*>(input), size);
  const auto place = dcp::find_directory(item.last(std::min(size, dcp::kArchiveTail)), size);
  if (!place) return 0;
  require(place->offset <= size && place->size <= size - place->offset);
  const auto records = dcp::read_directory(item.subspan(place->offset, place->size), size);
  if (!records) return 0;
  for (const dcp::Record& record : *records) {
    require(record.header <= size);
    const auto header = item.subspan(record.header);
    const auto offset =
        dcp::data_offset(header.first(std::min(header.size(), dcp::kLocalHeader)), record, size);
    if (offset) require(*offset <= size && record.size <= size - *offset);
  }
  return 0;
}
