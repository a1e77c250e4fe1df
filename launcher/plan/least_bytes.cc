#include "launcher/plan/least_bytes.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/mesh/group_mesh.h"
#include "core/program/keep.h"
#include "core/program/pipeline.h"
#include "core/program/temporary.h"
#include "core/schedule/schedule.h"
#include "launcher/plan/memory.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;

// Of rows that ranks share, for which scratch is counted: of more it takes long, and what they keep
// is too large by itself.
constexpr std::int64_t kMostPieces = 256;

bool is_even(const mesh::BufferPlan& buffer) {
  return std::ranges::adjacent_find(buffer.shard_sizes, std::not_equal_to<>()) ==
         buffer.shard_sizes.end();
}

// The most that wait, by how many are queued; then without those moments that others outdo.
std::vector<HeldStashes> moments_of(const std::vector<schedule::Cell>& cells) {
  using schedule::Work;
  std::map<int, int> most;
  int num_waiting = 0, num_queued = 0;
  for (const schedule::Cell& cell : cells) {
    if (cell.work == Work::kForward) num_waiting += 1;
    if (cell.work == Work::kBackward || cell.work == Work::kBackwardInput) num_waiting -= 1;
    if (cell.work == Work::kBackwardInput) num_queued += 1;
    if (cell.work == Work::kBackwardWeight) num_queued -= 1;
    int& known = most[num_queued];
    known = std::max(known, num_waiting);
  }
  std::vector<HeldStashes> moments;
  for (auto one = most.rbegin(); one != most.rend(); ++one)
    if (moments.empty() || one->second > moments.back().num_waiting)
      moments.push_back({one->second, one->first});
  return moments;
}

}  // namespace

// More micro-batches than fill the pipeline twice hold no less.
const std::vector<StashCounts::Moments>& StashCounts::of(const Layout& layout) {
  const std::int64_t num_micro_batches =
      std::min<std::int64_t>(layout.num_micro_batches, 2 * std::int64_t{layout.num_stages()});
  const std::string& schedule = layout.schedule.empty() ? layout.schedule_csv : layout.schedule;
  const auto key = std::tuple(layout.pp, layout.num_virtual, num_micro_batches, schedule);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, counted(layout, num_micro_batches)).first->second;
}

std::vector<StashCounts::Moments> StashCounts::counted(const Layout& layout,
                                                       std::int64_t num_micro_batches) {
  std::vector<Moments> counts(static_cast<std::size_t>(layout.pp), Moments(1));
  if (!layout.schedule_csv.empty()) return counts;
  Layout few = layout;
  few.num_micro_batches = num_micro_batches;
  few.stage_layers.clear();
  few.spread_embedding = few.spread_head = false;  // hold no stash
  few.stage_recompute.clear();
  const auto pipeline = program::pipeline_of(few, few.num_stages(), true);
  for (std::size_t rank = 0; pipeline && rank < counts.size(); ++rank) {
    num_cells_ += std::ssize(pipeline->schedule.ranks[rank]);
    counts[rank] = moments_of(pipeline->schedule.ranks[rank]);
  }
  return counts;
}

LeastBytes::LeastBytes(const SearchInput& input, Cuts& cuts, Pipelines& pipelines)
    : input_(input), cuts_(cuts), pipelines_(pipelines) {}

// Matrices that ranks own whole are dealt out over all layers: what the sample says of them is not
// what a rank holds.
LeastBytes::Held LeastBytes::held_by(int layer, const CutState& cut, const Layout& layout) const {
  Layout alone = layout;  // no window, whose places take the program to find, and no ring
  alone.shared_window = false;
  alone.offload = recipe::Offload::kNone;
  const bool keeps_state = layout.offload == recipe::Offload::kNone;
  Held held;
  held.is_block = cut.part.layers[static_cast<std::size_t>(layer)].kind == model::LayerKind::kBlock;
  for (const int group : cuts_.groups_of(layer)) {
    const auto& buffer = cut.buffers[static_cast<std::size_t>(group)];
    if (!is_even(buffer)) continue;
    const program::MemoryContext context = {
        cut.part, alone, {&buffer, 1}, input_.shape.sequence, {}, input_.keeps_copy && keeps_state,
        0};
    auto bytes = program::persistent_bytes(context);
    if (!keeps_state) bytes[static_cast<std::size_t>(program::MemoryClass::kOptimizer)] = {0};
    held.lasting += program::total_bytes(bytes);
    const auto& spec = cut.part.groups[static_cast<std::size_t>(group)];
    if (mesh::num_shards_of(spec, layout) > 1 && !layout.shared_window)
      held.gathered += buffer.total() * size_of(spec.compute_dtype);
    if (mesh::shards_gradients(spec, layout) && !layout.shared_window) {
      held.last_gradients = buffer.total() * size_of(cut.part.dtype);
      held.gradients += held.last_gradients;
    }
  }
  return held;
}

Result<const std::vector<LeastBytes::Held>*> LeastBytes::held_of(const Layout& layout) {
  const HeldKey key{layout.tp,
                    layout.ep,
                    layout.etp,
                    layout.num_shards(),
                    mesh::num_expert_shards(layout),
                    layout.zero,
                    layout.shared_window ? 1 : 0};
  if (const auto found = held_.find(key); found != held_.end()) return &found->second;
  PTRAIN_TRY(const CutState* cut, cuts_.state_of(layout));
  std::vector<Held>& layers = held_[key];
  for (int layer = 0; layer < std::ssize(cut->part.layers); ++layer)
    layers.push_back(held_by(layer, *cut, layout));
  return &layers;
}

Result<const std::vector<LeastBytes::Call>*> LeastBytes::calls_of(const Layout& layout,
                                                                  recipe::Recompute recompute) {
  const CallKey key{
      layout.tp,  layout.cp,          layout.ulysses,          layout.ep,
      layout.etp, layout.micro_batch, std::int64_t(recompute), layout.num_stages() > 1 ? 1 : 0};
  if (const auto found = calls_.find(key); found != calls_.end()) return &found->second;
  PTRAIN_TRY(const model::Architecture* part, cuts_.work_of(layout));
  Layout alike = layout;
  alike.recompute = recompute;
  alike.stage_recompute.clear();
  const program::MemoryContext context = {
      *part, alike, {}, input_.shape.sequence, {}, false, expert_load(*part)};
  std::vector<std::int64_t> temporary(part->layers.size());
  const bool counts_scratch = layout.micro_batch * layout.cp <= kMostPieces;
  if (counts_scratch) temporary = program::temporary_bytes_by_layer(context);
  std::vector<Call>& calls = calls_[key];
  for (const model::LayerSpec& layer : part->layers) {
    const bool is_block = layer.kind == model::LayerKind::kBlock;
    const auto keep = is_block ? program::keep_of(recompute) : program::Keep::kAll;
    std::int64_t queued = 0;
    if (is_block) queued = program::stash_bytes_for_weights(context, layer);
    if (is_block && counts_scratch) queued += program::queued_bytes(context, layer);
    calls.push_back({program::stash_bytes(context, layer, keep), queued,
                     temporary[static_cast<std::size_t>(layer.index)]});
  }
  return &calls;
}

struct LeastBytes::Rank {
  std::int64_t bytes = 0;
  std::int64_t gathered = 0, gradients = 0, temporary = 0;  // at once
  // Of its smallest stage.
  std::int64_t stash = std::numeric_limits<std::int64_t>::max();
  std::int64_t queued = std::numeric_limits<std::int64_t>::max();
};

void LeastBytes::add_held(const StageKinds& kinds, const Layout& layout,
                          const std::vector<Held>& held, Rank& rank) const {
  for (std::size_t like = 0; like < held.size(); ++like) {
    const std::int64_t times = kinds.num_like[like];
    if (times == 0) continue;
    rank.bytes += times * held[like].lasting;
    // The last reduction of a layer goes on beside the backward of the layer before.
    const std::int64_t beside = kinds.longest_run[like] > 1 ? held[like].last_gradients : 0;
    rank.gradients = std::max(rank.gradients, held[like].gradients + beside);
    if (layout.zero == 3)  // a layer's, and those that are gathered ahead of it
      rank.gathered =
          std::max(rank.gathered,
                   std::min(kinds.longest_run[like], layout.prefetch + 1) * held[like].gathered);
    else if (held[like].is_block)  // from the first use to the last: all at the end of a forward
      rank.gathered += times * held[like].gathered;
  }
}

void LeastBytes::add_calls(const StageKinds& kinds, const std::vector<Call>& calls,
                           Rank& rank) const {
  std::int64_t stash = 0, queued = 0;
  for (std::size_t like = 0; like < calls.size(); ++like) {
    const std::int64_t times = kinds.num_like[like];
    if (times == 0) continue;
    stash += times * calls[like].stash;
    queued += times * calls[like].queued;
    rank.temporary = std::max(rank.temporary, calls[like].temporary);
  }
  rank.stash = std::min(rank.stash, stash);
  rank.queued = std::min(rank.queued, queued);
}

std::vector<LeastBytes::Rank> LeastBytes::ranks_of(const Layout& layout,
                                                   const std::vector<Held>& held) {
  const std::vector<StageKinds>& stages = pipelines_.of(layout);
  if (stages.empty()) return {};
  std::vector<Rank> ranks(static_cast<std::size_t>(layout.pp),
                          {.bytes = runtime_bytes(layout, input_.shape.sequence)});
  Result<const std::vector<Call>*> calls = nullptr;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto stage = static_cast<int>(s);
    if (s == 0 || layout.recompute_of(stage) != layout.recompute_of(stage - 1))
      calls = calls_of(layout, layout.recompute_of(stage));
    if (!calls) return {};
    Rank& rank = ranks[static_cast<std::size_t>(stages[s].rank)];
    add_held(stages[s], layout, held, rank);
    add_calls(stages[s], **calls, rank);
  }
  return ranks;
}

// The embedding's reduction goes on beside the head's next backward.
void LeastBytes::add_embedding(const std::vector<Held>& held, Rank& rank) const {
  const auto embedding = static_cast<std::size_t>(cuts_.likes().front()),
             head = static_cast<std::size_t>(cuts_.likes().back());
  rank.gradients = std::max(rank.gradients, held[embedding].last_gradients + held[head].gradients);
}

std::int64_t LeastBytes::most_of(const Rank& rank, const StashCounts::Moments& moments) {
  std::int64_t stashes = 0;
  for (const HeldStashes& moment : moments)
    stashes = std::max(stashes, moment.num_waiting * rank.stash + moment.num_queued * rank.queued);
  return rank.bytes + rank.gathered + rank.gradients + rank.temporary + stashes;
}

std::int64_t LeastBytes::of(const Layout& layout) {
  const auto held = held_of(layout);
  if (!held || !layout.layer_dtypes.empty()) return 0;
  std::vector<Rank> ranks = ranks_of(layout, **held);
  if (ranks.empty()) return 0;
  if (layout.num_stages() == 1 && layout.num_micro_batches > 1) add_embedding(**held, ranks[0]);
  const std::vector<StashCounts::Moments>& counts = counts_.of(layout);
  std::int64_t most = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    most = std::max(most, most_of(ranks[r], counts[r]));
  return most;
}

}  // namespace ptrain::plan
