#include "core/program/rank_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/program/reads.h"

namespace ptrain::program {
namespace {

std::optional<Lane> lane_of(Kind kind) {
  switch (kind) {
    case Kind::kForward:
    case Kind::kBackward:
    case Kind::kRecompute:
    case Kind::kOptimizer:
      return Lane::kCompute;
    case Kind::kUnshard:
    case Kind::kReshard:
      return Lane::kGather;
    case Kind::kReduceGrad:
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

bool works_on_layer(Kind kind) {
  return kind == Kind::kForward || kind == Kind::kBackward || kind == Kind::kRecompute;
}

bool trains(const Program& program) {
  return std::any_of(program.actions.begin(), program.actions.end(), [](const Action& action) {
    const auto keep = keep_named(action.attribute("keep"));
    return action.kind == Kind::kBackward || action.kind == Kind::kGradNorm ||
           action.kind == Kind::kOptimizer || (keep && *keep != Keep::kNone);
  });
}

}  // namespace

RankCheck::RankCheck(const Program& program, const model::Architecture& architecture,
                     const mesh::Layout& layout)
    : architecture_(architecture),
      layout_(layout),
      ring_(architecture, layout),
      groups_(architecture.layers.size()),
      progress_(static_cast<std::size_t>(layout.num_micro_batches)),
      trains_(trains(program)) {
  last_in_lane_.fill(-1);
  clocks_.reserve(program.actions.size());
  for (const model::LayerSpec& layer : architecture.layers) {
    for (int index : layer.groups) group(index).readers += 1;
  }
}

const model::LayerSpec& RankCheck::spec_of(const Action& action) const {
  return architecture_.layers[static_cast<std::size_t>(action.layer_first)];
}

int RankCheck::required_writes(const Group& group) const {
  return transient_gradients() ? group.readers
                               : group.readers * static_cast<int>(layout_.num_micro_batches);
}

RankCheck::Broken RankCheck::run(const Action& action) {
  if (auto broken = well_formed(action)) return broken;
  if (auto broken = advance(action)) return broken;
  return dispatch(action);
}

RankCheck::Broken RankCheck::well_formed(const Action& action) const {
  if (action.id != static_cast<int>(clocks_.size())) return "its id is not its position";
  const auto lane = lane_of(action.kind);
  if (!lane) return "no layout over dp and shard has this kind";
  if (action.lane != *lane) return fmt::format("belongs on lane {}", to_string(*lane));
  if (works_on_layer(action.kind)) {
    const bool known = action.layer_first >= 0 && action.layer_first < num_layers() &&
                       action.micro_batch >= 0 && action.micro_batch < layout_.num_micro_batches;
    if (!known) return "no such layer or micro-batch";
    if (action.layer_last != action.layer_first) return "works on several layers";
  } else if (action.kind != Kind::kGradNorm) {
    if (action.group < 0 || action.group >= num_layers()) return "no such group";
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
      return backward(action);
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
    if (layout_.shard == 1) continue;
    if (!used.open) return fmt::format("g{} is not gathered", index);
    if (used.unshard > now(Lane::kGather)) return fmt::format("does not wait for g{}", index);
  }
  return std::nullopt;
}

RankCheck::Broken RankCheck::forward(const Action& action) {
  if (auto broken = use(action)) return broken;
  Progress& progress = progress_[static_cast<std::size_t>(action.micro_batch)];
  if (progress.forward != action.layer_first) {
    return fmt::format("m{} is at layer {}", action.micro_batch, progress.forward);
  }
  progress.forward += 1;
  const auto keep = keep_named(action.attribute("keep"));
  if (!keep) return "keep is not all, selected, input or none";
  if (trains_ != (*keep != Keep::kNone))
    return "keeps a stash that no backward frees, or none for one";
  if (*keep == Keep::kNone) return std::nullopt;
  const bool whole = keeps_all(*keep, spec_of(action));
  stashes_[{action.layer_first, action.micro_batch}] = whole ? Keep::kAll : *keep;
  return std::nullopt;
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
  Progress& progress = progress_[static_cast<std::size_t>(action.micro_batch)];
  if (progress.forward != num_layers() ||
      progress.backward != num_layers() - 1 - action.layer_first) {
    return fmt::format("m{} is {} layers forward and {} back", action.micro_batch, progress.forward,
                       progress.backward);
  }
  progress.backward += 1;
  const auto stash = stashes_.find({action.layer_first, action.micro_batch});
  if (stash == stashes_.end()) return "no stash is kept";
  if (stash->second != Keep::kAll)
    return fmt::format("of the stash only {} is kept and nothing recomputed the rest",
                       to_string(stash->second));
  stashes_.erase(stash);
  return write(action);
}

RankCheck::Broken RankCheck::write(const Action& action) {
  const bool adds = group(action.layer_first).writes > 0;
  if (action.attribute("accumulate") != (adds ? "1" : "0")) {
    return fmt::format("accumulate is not {}", adds ? 1 : 0);
  }
  for (int index : spec_of(action).groups) {
    Group& written = group(index);
    if (written.unfinished >= 0) {
      return fmt::format("writes g{} while {} reduces it", index, written.unfinished);
    }
    if (!transient_gradients() && written.num_reductions > 0) {
      return fmt::format("writes g{} after its reduction", index);
    }
    if (transient_gradients() && written.writes > 0 &&
        written.written_micro_batch != action.micro_batch) {
      return fmt::format("g{} of m{} was not reduced", index, written.written_micro_batch);
    }
    written.writes += 1;
    written.written_micro_batch = action.micro_batch;
    written.last_write = now(Lane::kCompute);
  }
  return std::nullopt;
}

RankCheck::Broken RankCheck::unshard(const Action& action) {
  Group& gathered = group(action.group);
  if (layout_.shard == 1) return "there are no shards to gather";
  if (gathered.open) return fmt::format("g{} is whole already", action.group);
  if (gathered.updated) return fmt::format("gathers g{} after its update", action.group);
  gathered.open = true;
  gathered.unshard = now(Lane::kGather);
  return std::nullopt;
}

RankCheck::Broken RankCheck::reshard(const Action& action) {
  Group& given = group(action.group);
  if (!given.open) return fmt::format("g{} is not gathered", action.group);
  if (given.last_use > now(Lane::kCompute)) {
    return fmt::format("does not wait for the last use of g{}", action.group);
  }
  given.open = false;
  return std::nullopt;
}

RankCheck::Broken RankCheck::reduce(const Action& action) {
  Group& reduced = group(action.group);
  if (layout_.num_data_ranks() == 1) return "there is nobody to reduce with";
  if (reduced.writes != required_writes(reduced)) {
    return fmt::format("g{} has {} of {} gradients", action.group, reduced.writes,
                       required_writes(reduced));
  }
  if (reduced.last_write > now(Lane::kCompute)) {
    return fmt::format("does not wait for the last gradient of g{}", action.group);
  }
  reduced.writes = 0;
  reduced.num_reductions += 1;
  if (auto broken = over_replicas(action, reduced)) return broken;
  reduced.unfinished = action.id;
  return std::nullopt;
}

// Where a step has several reductions of a group, replicas add up once, with the last.
RankCheck::Broken RankCheck::over_replicas(const Action& action, const Group& reduced) const {
  const bool early = layout_.dp > 1 && reduced.num_reductions < num_reductions();
  if (action.attribute("axis") == (early ? "shard" : "")) return std::nullopt;
  return early ? "replicas add up before the last micro-batch"
               : "sums over part of the data ranks, and no sum follows";
}

RankCheck::Broken RankCheck::norm() const {
  if (norm_position_ > 0) return "a second norm";
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (group.last_write > now(Lane::kCompute)) return "does not wait for the last backward";
    const bool alone = layout_.num_data_ranks() == 1;
    if (alone && group.writes != required_writes(group)) {
      return fmt::format("g{} has {} of {} gradients", i, group.writes, required_writes(group));
    }
    if (!alone && group.num_reductions != num_reductions()) {
      return fmt::format("g{} is reduced {} of {} times", i, group.num_reductions,
                         num_reductions());
    }
    if (group.unfinished >= 0) return fmt::format("nobody waited for {}", group.unfinished);
  }
  return std::nullopt;
}

RankCheck::Broken RankCheck::optimizer(const Action& action) {
  Group& updated = group(action.group);
  if (norm_position_ == 0 || now(Lane::kReduce) < norm_position_) {
    return "does not wait for GRAD_NORM";
  }
  if (updated.updated) return fmt::format("g{} is updated already", action.group);
  updated.updated = true;
  return ring_.update(action, now_);
}

RankCheck::Broken RankCheck::end() const {
  for (std::size_t m = 0; m < progress_.size(); ++m) {
    const int back = trains_ ? num_layers() : 0;
    if (progress_[m].forward != num_layers() || progress_[m].backward != back) {
      return fmt::format("m{} is not finished", m);
    }
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].open) return fmt::format("g{} is never given back", i);
    if (trains_ && !groups_[i].updated) return fmt::format("g{} is never updated", i);
  }
  return trains_ ? ring_.end() : std::nullopt;
}

}  // namespace ptrain::program
