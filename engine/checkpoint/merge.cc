#include "engine/checkpoint/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/dcp/cover.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::checkpoint {

namespace {

[[noreturn]] void refuse(const std::string& key, std::string_view why) {
  throw EngineError(ExitCode::kBug, fmt::format("tensor '{}' cannot be saved: {}", key, why));
}

// Chunks in the order of their first elements.
void sort_chunks(dcp::TensorEntry& entry) {
  const auto strides = dcp::row_major_strides(entry.shape);
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    const dcp::Sizes& offsets = entry.chunks[i].box.offsets;
    order.emplace_back(
        std::inner_product(offsets.begin(), offsets.end(), strides.begin(), std::int64_t{0}), i);
  }
  std::ranges::sort(order);
  std::vector<dcp::Chunk> sorted;
  for (const auto& [begin, index] : order) sorted.push_back(std::move(entry.chunks[index]));
  entry.chunks = std::move(sorted);
}

void add(dcp::Metadata& whole, const std::string& key, dcp::TensorEntry part) {
  const auto [place, fresh] = whole.tensors.try_emplace(key);
  dcp::TensorEntry& entry = place->second;
  if (fresh) {
    entry = std::move(part);
    return;
  }
  if (entry.dtype != part.dtype || entry.shape != part.shape)
    refuse(key, "ranks give it different shapes or dtypes");
  std::move(part.chunks.begin(), part.chunks.end(), std::back_inserter(entry.chunks));
}

void check_coverage(const std::string& key, dcp::TensorEntry& entry) {
  std::vector<const dcp::Box*> boxes;
  for (const dcp::Chunk& chunk : entry.chunks) boxes.push_back(&chunk.box);
  if (const auto why = dcp::uncovered(entry.shape, boxes)) refuse(key, *why);
  sort_chunks(entry);
  if (planted(Bug::kShardsSwapped) && entry.chunks.size() > 1)
    std::swap(entry.chunks[0].location, entry.chunks[1].location);
}

// Appends `text` cut once at its first dot, or (from_end) at its last.
void split(const std::string& text, bool from_end, std::vector<std::string>& parts) {
  const std::size_t dot = from_end ? text.rfind('.') : text.find('.');
  parts.push_back(text.substr(0, dot));
  if (dot != std::string::npos) parts.push_back(text.substr(dot + 1));
}

}  // namespace

std::vector<std::string> path_of_key(const std::string& key) {
  for (const std::string prefix : {"optim.state.", "optim.param_groups."}) {
    if (!key.starts_with(prefix)) continue;
    std::vector<std::string> parts{"optim", prefix.substr(6, prefix.size() - 7)};
    split(key.substr(prefix.size()), true, parts);
    return parts;
  }
  std::vector<std::string> parts;
  split(key, false, parts);
  return parts;
}

dcp::Metadata merge(std::vector<RankFile> files) {
  dcp::Metadata whole;
  for (RankFile& file : files) {
    for (auto& [key, entry] : file.content.tensors) add(whole, key, std::move(entry));
    whole.values.merge(file.content.values);
  }
  for (auto& [key, entry] : whole.tensors) {
    if (whole.values.contains(key)) refuse(key, "it is also the key of a value");
    check_coverage(key, entry);
    whole.paths[key] = path_of_key(key);
  }
  for (const auto& [key, location] : whole.values) whole.paths[key] = path_of_key(key);
  return whole;
}

}  // namespace ptrain::checkpoint
