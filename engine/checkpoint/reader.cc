#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "core/dcp/item.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/convert.h"
#include "engine/checkpoint/fill.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/frame.h"
#include "engine/checkpoint/share_out.h"
#include "engine/checkpoint/stored_item.h"

namespace ptrain::checkpoint {

namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Why this item cannot come from the checkpoint; empty: it can, as far as `.metadata` tells.
std::string tensor_problem(const TensorItem& item, const dcp::Metadata& metadata) {
  const auto found = metadata.tensors.find(item.key);
  if (found == metadata.tensors.end())
    return fmt::format(
        "'{}' is {}", item.key,
        metadata.values.contains(item.key) ? "stored as a plain value, not a tensor" : "missing");
  const dcp::TensorEntry& entry = found->second;
  if (entry.shape != item.shape)
    return fmt::format("'{}' has the shape {} instead of {}", item.key, shape_text(entry.shape),
                       shape_text(item.shape));
  if (!convertible(entry.dtype, item.dtype))
    return fmt::format("'{}' is {}, which cannot be loaded as {}", item.key, entry.dtype,
                       name_of(item.dtype));
  return {};
}

std::string value_problem(const ValueItem& item, const dcp::Metadata& metadata) {
  if (metadata.values.contains(item.key)) return {};
  return fmt::format(
      "'{}' is {}", item.key,
      metadata.tensors.contains(item.key) ? "stored as a tensor, not a plain value" : "missing");
}

void check_wanted(const std::string& folder, const Items& items, const dcp::Metadata& metadata) {
  std::string problems;
  const auto add = [&](const std::string& problem) {
    if (!problem.empty()) problems.append("\n  " + problem);
  };
  for (const TensorItem& item : items.tensors) add(tensor_problem(item, metadata));
  for (const ValueItem& item : items.values) add(value_problem(item, metadata));
  if (!problems.empty())
    throw EngineError(ExitCode::kUnusable, folder + " does not fit this model:" + problems,
                      "use the recipe that the checkpoint was made with");
}

ValueItem read_value(const std::string& key, const dcp::Location& location, OpenFiles& files) {
  const auto file = files.get(location.file);
  const StoredItem item(*file, location, key);
  item.check();
  auto value = dcp::read_value(item.pickle());
  if (!value)
    throw EngineError(ExitCode::kUnusable,
                      fmt::format("'{}' in the checkpoint: {}", key, value.error().message));
  return {key, std::move(*value)};
}

// Whether every plain value is as ptrain writes it, to the byte.
bool have_own_frames(const dcp::Metadata& metadata, OpenFiles& files) {
  return std::ranges::all_of(metadata.values, [&](const auto& value) {
    const auto& [key, location] = value;
    const auto file = files.get(location.file);
    return has_own_frame(*file, location, StoredItem(*file, location, key).pickle());
  });
}

}  // namespace

Source::Source(std::string folder, comm::Communicator& world, Check check)
    : folder_(std::move(folder)), world_(&world), check_(check) {
  together(world, [&] {
    fault::point("start.load.manifest");
    manifest_ = read_manifest(folder_);
    fault::point("start.load.metadata");
    metadata_ = read_folder_metadata(folder_);
    fault::point("start.load.sizes");
    check_sizes(folder_, manifest_, metadata_);
    fault::point("start.load.content");
    // Without a list of ours there may be no checksums of chunks.
    if (!manifest_.contains(".metadata")) check_ = Check::kAtOnce;
    const Share share{world.rank(), world.size(), threads_of_rank(world)};
    if (check_ == Check::kAtOnce)
      check_content(folder_, manifest_, metadata_, share);
    else
      check_content(folder_, {{".metadata", manifest_.at(".metadata")}}, metadata_, {});
  });
}

std::vector<ValueItem> Source::load(const Items& items) const {
  together(*world_, [&] { check_wanted(folder_, items, metadata_); });
  try {
    return read(items);
  } catch (const EngineError& error) {
    if (check_ == Check::kAtOnce || error.error().code != ExitCode::kUnusable) throw;
    throw Damaged(error.error());
  }
}

std::vector<ValueItem> Source::read(const Items& items) const {
  std::vector<ValueItem> values;
  std::atomic<bool> all_checked = true;
  const int threads = threads_of_rank(*world_);
  together(*world_, [&] {
    OpenFiles files(folder_);
    fault::point("start.load.tensors");
    share_out(items.tensors.size(), items.brings_any() ? 1 : threads, [&](std::size_t i) {
      fault::point("start.load.tensor");
      if (!fill(items.tensors[i], metadata_.tensors.at(items.tensors[i].key), files))
        all_checked = false;
    });
    for (const ValueItem& item : items.values) {
      fault::point("start.load.value");
      values.push_back(read_value(item.key, metadata_.values.at(item.key), files));
    }
    const bool checks_values = check_ == Check::kWhileLoading && world_->rank() == 0;
    if (checks_values && !have_own_frames(metadata_, files)) all_checked = false;
  });
  if (check_ == Check::kWhileLoading) {
    const auto each = gather_bytes(all_checked ? "" : "parts", *world_);
    const bool parts = std::find(each.begin(), each.end(), "parts") != each.end();
    const Share share{world_->rank(), world_->size(), threads};
    if (parts) together(*world_, [&] { check_content(folder_, manifest_, metadata_, share); });
  }
  fault::point("start.load.ready");
  return values;
}

}  // namespace ptrain::checkpoint
