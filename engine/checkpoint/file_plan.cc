#include "engine/checkpoint/file_plan.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "core/base/hash.h"
#include "core/dcp/archive.h"
#include "core/dcp/item.h"

namespace ptrain::checkpoint {

namespace {

// An item stays below 4 GiB, where the plain zip form ends, and a reader of a part reads little
// more.
constexpr std::int64_t kMaxItemBytes = std::int64_t{1} << 30;
// Large data starts on a page, so that it can be mapped or read directly.
constexpr std::int64_t kLargeItem = 1 << 16;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLine = 64;

void update(Hasher64& hasher, std::span<const std::int64_t> values) {
  hasher.update(std::as_bytes(values));
}

void update(Hasher64& hasher, const std::string& text) {
  const std::int64_t size = std::ssize(text);
  update(hasher, std::span(&size, 1));
  hasher.update(std::as_bytes(std::span(text)));
}

void update(Hasher64& hasher, const dcp::Chunk& chunk) {
  update(hasher, chunk.box.offsets);
  update(hasher, chunk.box.sizes);
  const std::int64_t place[] = {chunk.location.offset, chunk.location.length};
  update(hasher, place);
}

}  // namespace

std::string rank_file_name(int rank) { return fmt::format("__{}_0.distcp", rank); }

std::uint64_t alignment_of(std::int64_t bytes) { return bytes >= kLargeItem ? kPage : kLine; }

std::vector<dcp::Chunk> plan_item(const TensorItem& item, const std::string& file,
                                  std::int64_t& position) {
  const std::string dtype(name_of(item.dtype));
  const std::int64_t element = size_of(item.dtype);
  const dcp::Box part = item.box();
  std::vector<dcp::Chunk> chunks;
  for (dcp::Box& box :
       dcp::boxes_of_run(part.sizes, item.begin, item.end, kMaxItemBytes / element)) {
    for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += part.offsets[d];
    const std::int64_t bytes = dcp::volume(box.sizes) * element;
    const dcp::DataRecord data{static_cast<std::uint64_t>(bytes), 0, alignment_of(bytes)};
    const auto length = static_cast<std::int64_t>(dcp::wrapped_size(
        dcp::write_tensor(dtype, box.sizes).size(), data, static_cast<std::uint64_t>(position)));
    chunks.push_back({std::move(box), {file, position, length, false}});
    position += length;
  }
  return chunks;
}

void add_item(dcp::Metadata& content, const TensorItem& item, std::vector<dcp::Chunk> chunks) {
  dcp::TensorEntry& entry = content.tensors[item.key];
  entry.dtype = name_of(item.dtype);
  entry.shape = item.shape;
  std::move(chunks.begin(), chunks.end(), std::back_inserter(entry.chunks));
}

FilePlan plan_file(const Items& items, int rank) {
  FilePlan plan;
  const std::string file = rank_file_name(rank);
  for (const TensorItem& item : items.tensors)
    add_item(plan.content, item, plan_item(item, file, plan.bytes));
  return plan;
}

std::uint64_t digest_of(const dcp::Metadata& content) {
  Hasher64 hasher;
  for (const auto& [key, entry] : content.tensors) {
    update(hasher, key);
    update(hasher, entry.dtype);
    update(hasher, entry.shape);
    for (const dcp::Chunk& chunk : entry.chunks) update(hasher, chunk);
  }
  return hasher.digest();
}

}  // namespace ptrain::checkpoint
