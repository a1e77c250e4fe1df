#include "core/program/rank_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/program/passes/passes.h"
#include "core/program/reads.h"
#include "core/program/segments.h"

namespace ptrain::program {
namespace {

std::optional<Lane> lane_of(const Action& action) {
  if (exchanges_within_call(action))
    return action.attribute("kind") == to_string(model::ExchangeKind::kShift) ? Lane::kGather
                                                                              : Lane::kCompute;
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kBackward:
    case Kind::kBackwardInput:
    case Kind::kBackwardWeight:
    case Kind::kRecompute:
    case Kind::kOptimizer:
      return Lane::kCompute;
    case Kind::kSendForward:
    case Kind::kReceiveForward:
    case Kind::kSendBackward:
    case Kind::kReceiveBackward:
      return Lane::kTransfer;
    case Kind::kUnshard:
    case Kind::kReshard:
      return Lane::kGather;
    case Kind::kReduceGrad:
    case Kind::kSyncTied:
    case Kind::kExchange:
    case Kind::kGradNorm:
      return Lane::kReduce;
    case Kind::kFetch:
      return Lane::kCopyIn;
    case Kind::kOffload:
      return Lane::kCopyOut;
    default:
      return std::nullopt;
  }
}

bool is_transfer(const Action& action) { return action.lane == Lane::kTransfer; }

bool trains(const Program& program) {
  return std::any_of(program.actions.begin(), program.actions.end(), [](const Action& action) {
    const auto keep = keep_named(action.attribute("keep"));
    return action.kind == Kind::kBackward || action.kind == Kind::kBackwardInput ||
           action.kind == Kind::kGradNorm || action.kind == Kind::kOptimizer ||
           (keep && *keep != Keep::kNone);
  });
}

}  // namespace

RankCheck::RankCheck(const Program& program, const model::Architecture& architecture,
                     const mesh::Layout& layout, const Pipeline& pipeline)
    : architecture_(architecture),
      layout_(layout),
      pipeline_(pipeline),
      stage_rank_(mesh::coordinates_of(layout, program.rank).pp),
      passages_(pipeline, stage_rank_, static_cast<int>(layout.num_micro_batches)),
      ring_(architecture, layout),
      segments_(architecture),
      groups_(static_cast<std::size_t>(architecture.num_groups())),
      needs_sum_(groups_summed(architecture)),
      trains_(trains(program)) {
  last_in_lane_.fill(-1);
  clocks_.reserve(program.actions.size());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const model::GroupSpec& spec = architecture.groups[i];
    groups_[i].writes.resize(static_cast<std::size_t>(layout.num_micro_batches));
    groups_[i].shards = mesh::num_shards_of(spec, layout);
    groups_[i].replicas = mesh::num_replicas_of(spec, layout);
    groups_[i].each_micro_batch = mesh::shards_gradients(spec, layout);
  }
  for (int stage = 0; stage < pipeline.num_stages(); ++stage) {
    const auto [begin, end] = pipeline.layers_of(stage);
    for (int layer = begin; passages_.holds(stage) && layer < end; ++layer)
      for (int index : architecture.layers[static_cast<std::size_t>(layer)].groups)
        group(index).readers += 1;
  }
  if (pipeline.spreads_embedding)
    for (int index : architecture.layers.front().groups) group(index).readers += 1;
  if (pipeline.spreads_head && !passages_.holds(pipeline.last_stage()))
    for (int index : architecture.layers.back().groups) group(index).readers += 1;
}

const model::LayerSpec& RankCheck::spec_of(const Action& action) const {
  return architecture_.layers[static_cast<std::size_t>(action.layer_first)];
}

int RankCheck::num_writes(const Group& group, int micro_batch) {
  if (micro_batch >= 0) return group.writes[static_cast<std::size_t>(micro_batch)];
  return std::accumulate(group.writes.begin(), group.writes.end(), 0);
}

int RankCheck::required_writes(const Group& group, int micro_batch) const {
  return micro_batch >= 0 ? group.readers
                          : group.readers * static_cast<int>(layout_.num_micro_batches);
}

RankCheck::Broken RankCheck::run(const Action& action) {
  if (auto broken = well_formed(action)) return broken;
  if (auto broken = advance(action)) return broken;
  if (exchanges_within_call(action)) return segments_.exchange(action);
  if (!call_of(action)) return dispatch(action);
  if (auto broken = segments_.segment(action)) return broken;
  if (begins_call(action)) passages_.begin(action);
  return ends_call(action, architecture_) ? dispatch(action) : use(action);
}

RankCheck::Broken RankCheck::well_formed(const Action& action) const {
  if (action.id != static_cast<int>(clocks_.size())) return "its id is not its position";
  const auto lane = lane_of(action);
  if (!lane) return "no layout of this build has this kind";
  if (action.lane != *lane) return fmt::format("belongs on lane {}", to_string(*lane));
  if (is_transfer(action)) return std::nullopt;
  if (layer_of(action) >= 0 || action.layer_first >= 0) {
    const bool known = action.layer_first >= 0 && action.layer_first < num_layers() &&
                       action.micro_batch >= 0 && action.micro_batch < layout_.num_micro_batches;
    if (!known) return "no such layer or micro-batch";
    if (action.layer_last != action.layer_first) return "works on several layers";
  } else if (action.kind != Kind::kGradNorm) {
    if (action.group < 0 || action.group >= architecture_.num_groups()) return "no such group";
    if (!groups_[static_cast<std::size_t>(action.group)].is_held())
      return fmt::format("g{} belongs to other ranks", action.group);
  }
  return std::nullopt;
}

// Joins what is known to be finished: before it in its lane, and behind each action it waits for.
RankCheck::Broken RankCheck::advance(const Action& action) {
  const auto lane = static_cast<std::size_t>(action.lane);
  now_ = last_in_lane_[lane] < 0 ? Clock{} : clocks_[static_cast<std::size_t>(last_in_lane_[lane])];
  for (int id : action.after) {
    if (id < 0 || id >= action.id) return fmt::format("waits for {}, which is not before it", id);
    const Clock& other = clocks_[static_cast<std::size_t>(id)];
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] = std::max(now_[i], other[i]);
    for (Group& group : groups_) {
      if (group.unfinished == id) group.unfinished = -1;
    }
  }
  now_[lane] += 1;
  clocks_.push_back(now_);
  last_in_lane_[lane] = action.id;
  return std::nullopt;
}

RankCheck::Broken RankCheck::dispatch(const Action& action) {
  switch (action.kind) {
    case Kind::kForward:
      return forward(action);
    case Kind::kRecompute:
      return recompute(action);
    case Kind::kBackward:
    case Kind::kBackwardInput:
      return backward(action);
    case Kind::kBackwardWeight:
      return weight(action);
    case Kind::kSendForward:
    case Kind::kSendBackward:
      return passages_.send(action, now(Lane::kCompute));
    case Kind::kReceiveForward:
    case Kind::kReceiveBackward:
      return passages_.receive(action);
    case Kind::kSyncTied:
      return sync_tied(action);
    case Kind::kExchange:
      return sum_over_tensor_ranks(action);
    case Kind::kUnshard:
      return unshard(action);
    case Kind::kReshard:
      return reshard(action);
    case Kind::kReduceGrad:
      return reduce(action);
    case Kind::kGradNorm: {
      auto broken = norm();
      norm_position_ = now(Lane::kReduce);
      return broken;
    }
    case Kind::kFetch:
      return ring_.fetch(action, now_);
    case Kind::kOffload:
      return ring_.offload(action, now_);
    default:
      return optimizer(action);
  }
}

// The parameters that a layer reads must be whole, and known to be.
RankCheck::Broken RankCheck::use(const Action& action) {
  for (int index : groups_read(action, architecture_)) {
    Group& used = group(index);
    if (used.updated) return fmt::format("reads g{} after its update", index);
    used.last_use = now(Lane::kCompute);
    if (used.shards == 1) continue;
    if (!used.open) return fmt::format("g{} is not gathered", index);
    if (used.unshard > now(Lane::kGather)) return fmt::format("does not wait for g{}", index);
  }
  return std::nullopt;
}

RankCheck::Broken RankCheck::forward(const Action& action) {
  if (auto broken = use(action)) return broken;
  if (passages_.is_shared(action)) return share(action);
  if (auto broken = passages_.is_embedding(action) ? passages_.embedding(action)
                                                   : passages_.forward(action, now(Lane::kCompute)))
    return broken;
  const auto keep = keep_named(action.attribute("keep"));
  if (!keep) return "keep is not all, selected, input or none";
  if (trains_ != (*keep != Keep::kNone))
    return "keeps a stash that no backward frees, or none for one";
  if (*keep == Keep::kNone) return std::nullopt;
  const bool whole = keeps_all(*keep, spec_of(action));
  stashes_[{action.layer_first, action.micro_batch}] = whole ? Keep::kAll : *keep;
  return std::nullopt;
}

// Of what the last stage keeps for the head this rank has nothing.
RankCheck::Broken RankCheck::share(const Action& action) {
  if (trains_ != (action.kind == Kind::kBackward)) return "the head is shared going back";
  if (auto broken = passages_.shared(action)) return broken;
  return trains_ ? write(action) : std::nullopt;
}

RankCheck::Broken RankCheck::recompute(const Action& action) {
  if (auto broken = use(action)) return broken;
  const auto stash = stashes_.find({action.layer_first, action.micro_batch});
  if (stash == stashes_.end()) return "no input is kept";
  if (stash->second == Keep::kAll) return "the stash is whole already";
  if (action.attribute("from") != to_string(stash->second))
    return fmt::format("begins with another part of the stash than is kept: {}",
                       to_string(stash->second));
  stash->second = Keep::kAll;
  return std::nullopt;
}

RankCheck::Broken RankCheck::backward(const Action& action) {
  if (auto broken = use(action)) return broken;
  if (passages_.is_shared(action)) return share(action);
  if (auto broken = passages_.is_embedding(action)
                        ? passages_.embedding(action)
                        : passages_.backward(action, now(Lane::kCompute)))
    return broken;
  const auto stash = stashes_.find({action.layer_first, action.micro_batch});
  if (stash == stashes_.end()) return "no stash is kept";
  if (stash->second != Keep::kAll)
    return fmt::format("of the stash only {} is kept and nothing recomputed the rest",
                       to_string(stash->second));
  return write(action);
}

// Of a layer that queues nothing a backward of the input is a whole one.
RankCheck::Broken RankCheck::weight(const Action& action) {
  if (spec_of(action).kind != model::LayerKind::kBlock) return "only blocks queue products";
  if (auto broken = passages_.weight(action)) return broken;
  return write(action);
}

RankCheck::Broken RankCheck::write(const Action& action) {
  const bool is_whole =
      action.kind != Kind::kBackwardInput || spec_of(action).kind != model::LayerKind::kBlock;
  for (int index : spec_of(action).groups) {
    Group& written = group(index);
    if (written.unfinished >= 0) {
      return fmt::format("writes g{} while {} reduces it", index, written.unfinished);
    }
    const bool too_late = written.each_micro_batch
                              ? num_writes(written, action.micro_batch) ==
                                    required_writes(written, action.micro_batch)
                              : written.num_reductions > 0;
    if (too_late) return fmt::format("writes g{} after its reduction", index);
    if (is_whole) written.writes[static_cast<std::size_t>(action.micro_batch)] += 1;
    written.last_write = now(Lane::kCompute);
  }
  if (is_whole) stashes_.erase({action.layer_first, action.micro_batch});
  return std::nullopt;
}

RankCheck::Broken RankCheck::end() const {
  if (auto broken = passages_.end(trains_)) return broken;
  if (auto broken = segments_.end()) return broken;
  if (!stashes_.empty())
    return fmt::format("the stash of l{} m{} is never freed", stashes_.begin()->first.first,
                       stashes_.begin()->first.second);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].open) return fmt::format("g{} is never given back", i);
    if (trains_ && groups_[i].is_held() && !groups_[i].updated)
      return fmt::format("g{} is never updated", i);
  }
  return trains_ ? ring_.end() : std::nullopt;
}

}  // namespace ptrain::program
