#include "launcher/plan/least_bytes.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/mesh/group_mesh.h"
#include "core/mesh/stages.h"
#include "core/program/keep.h"
#include "core/program/pipeline.h"
#include "core/schedule/simulate.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/memory.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;

bool is_even(const mesh::BufferPlan& buffer) {
  return std::ranges::adjacent_find(buffer.shard_sizes, std::not_equal_to<>()) ==
         buffer.shard_sizes.end();
}

}  // namespace

// More micro-batches than fill the pipeline twice hold no less.
const std::vector<double>& StashCounts::of(const Layout& layout) {
  Layout few = layout;
  few.num_micro_batches =
      std::min<std::int64_t>(layout.num_micro_batches, 2 * std::int64_t{layout.num_stages()});
  const auto key =
      std::tuple(few.schedule + few.schedule_csv, few.pp, few.num_virtual, few.num_micro_batches);
  const auto [known, is_new] = known_.try_emplace(key, static_cast<std::size_t>(layout.pp), 1.0);
  if (!is_new || !few.schedule_csv.empty()) return known->second;
  few.stage_layers.clear();
  few.spread_head = false;  // holds no stash
  few.stage_recompute.clear();
  const auto pipeline = program::pipeline_of(few, few.num_stages(), true);
  for (std::size_t rank = 0; pipeline && rank < known->second.size(); ++rank)
    known->second[rank] = schedule::peak_stashes(pipeline->schedule.ranks[rank]).input;
  return known->second;
}

LeastBytes::LeastBytes(const SearchInput& input, const CutSample& cut, StashCounts& counts)
    : input_(input), cut_(cut), counts_(counts) {}

// Matrices that ranks own whole are dealt out over all layers: what the sample says of them is not
// what a rank holds.
LeastBytes::Held LeastBytes::held_by(int layer, const Layout& layout) const {
  Layout alone = layout;  // no window, whose places take the program to find, and no ring
  alone.shared_window = false;
  alone.offload = recipe::Offload::kNone;
  const bool keeps_state = layout.offload == recipe::Offload::kNone;
  Held held;
  for (const int group : cut_.groups_of(layer)) {
    const auto& buffer = cut_.buffers[static_cast<std::size_t>(group)];
    if (!is_even(buffer)) continue;
    const program::MemoryContext context = {
        cut_.part, alone, {&buffer, 1}, input_.shape.sequence, {}, input_.keeps_copy && keeps_state,
        0};
    auto bytes = program::persistent_bytes(context);
    if (!keeps_state) bytes[static_cast<std::size_t>(program::MemoryClass::kOptimizer)] = {0};
    held.lasting += total_bytes(bytes);
    const auto& spec = cut_.part.groups[static_cast<std::size_t>(group)];
    if (mesh::num_shards_of(spec, layout) > 1 && !layout.shared_window)
      held.gathered += buffer.total() * size_of(spec.compute_dtype);
    if (mesh::shards_gradients(spec, layout) && !layout.shared_window)
      held.gradients += buffer.total() * size_of(cut_.part.dtype);
  }
  return held;
}

const std::vector<LeastBytes::Held>& LeastBytes::held_by_layers(const Layout& layout) {
  std::vector<Held>& layers = held_[layout.zero];
  for (int layer = static_cast<int>(layers.size()); layer < std::ssize(cut_.part.layers); ++layer)
    layers.push_back(held_by(layer, layout));
  return layers;
}

struct LeastBytes::Rank {
  std::int64_t bytes = runtime_bytes();
  std::int64_t gathered = 0, gradients = 0;                       // at once
  std::int64_t stash = std::numeric_limits<std::int64_t>::max();  // of its smallest stage
};

void LeastBytes::add_stage(const mesh::StageLayers& layers, program::Keep keep,
                           const program::MemoryContext& context, Rank& rank) {
  const std::vector<Held>& held_by = held_by_layers(context.layout);
  std::int64_t stash = 0;
  for (int index = layers.begin; index < layers.end; ++index) {
    const auto like = static_cast<std::size_t>(cut_.likes[static_cast<std::size_t>(index)]);
    const model::LayerSpec& layer = cut_.part.layers[like];
    const bool is_block = layer.kind == model::LayerKind::kBlock;
    const Held& held = held_by[like];
    stash += program::stash_bytes(context, layer, is_block ? keep : program::Keep::kAll);
    rank.bytes += held.lasting;
    rank.gradients = std::max(rank.gradients, held.gradients);
    if (context.layout.zero == 3)
      rank.gathered = std::max(rank.gathered, held.gathered);
    else if (is_block)  // from the first use to the last: all at the end of a forward
      rank.gathered += held.gathered;
  }
  rank.stash = std::min(rank.stash, stash);
}

std::int64_t LeastBytes::of(const Layout& layout) {
  auto stages = mesh::layers_of_stages(layout, static_cast<int>(cut_.likes.size()));
  const auto ranks_of = mesh::ranks_of_stages(layout);
  if (!stages || !ranks_of || !layout.layer_dtypes.empty()) return 0;  // as LeastTime
  if (layout.spread_head) stages->back().end -= 1;                     // as LeastTime
  const program::MemoryContext context = {
      cut_.part, layout, cut_.buffers, input_.shape.sequence, {}, false, expert_load(cut_.part)};
  std::vector<Rank> ranks(static_cast<std::size_t>(layout.pp));
  for (std::size_t s = 0; s < stages->size(); ++s)
    add_stage((*stages)[s], program::keep_of(layout.recompute_of(static_cast<int>(s))), context,
              ranks[static_cast<std::size_t>((*ranks_of)[s])]);
  const std::vector<double>& counts = counts_.of(layout);
  std::int64_t most = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double stashes = counts[r] * static_cast<double>(ranks[r].stash);
    most = std::max(most, ranks[r].bytes + ranks[r].gathered + ranks[r].gradients +
                              static_cast<std::int64_t>(stashes));
  }
  return most;
}

}  // namespace ptrain::plan
