#include "engine/checkpoint/merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::checkpoint {

namespace {

[[noreturn]] void refuse(const std::string& key, std::string_view why) {
  throw EngineError(ExitCode::kBug, fmt::format("tensor '{}' cannot be saved: {}", key, why));
}

[[noreturn]] void refuse_hole(const std::string& key, std::int64_t begin, std::int64_t end) {
  refuse(key, fmt::format("elements {} to {} are held by no rank", begin, end));
}

std::int64_t flat_begin(const dcp::TensorEntry& entry, const dcp::Chunk& chunk) {
  const auto strides = dcp::row_major_strides(entry.shape);
  std::int64_t begin = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) begin += chunk.box.offsets[d] * strides[d];
  return begin;
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

// Every chunk we write is one run of the flattened tensor, so sorting them is enough.
void check_coverage(const std::string& key, dcp::TensorEntry& entry) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < entry.chunks.size(); ++i)
    order.emplace_back(flat_begin(entry, entry.chunks[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<dcp::Chunk> sorted;
  std::int64_t covered = 0;
  for (const auto& [begin, index] : order) {
    if (begin > covered) refuse_hole(key, covered, begin);
    if (begin < covered) refuse(key, fmt::format("element {} is held twice", begin));
    covered += dcp::volume(entry.chunks[index].box.sizes);
    sorted.push_back(std::move(entry.chunks[index]));
  }
  const std::int64_t all = dcp::volume(entry.shape);
  if (covered != all) refuse_hole(key, covered, all);
  if (planted(Bug::kShardsSwapped) && sorted.size() > 1)
    std::swap(sorted[0].location, sorted[1].location);
  entry.chunks = std::move(sorted);
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
