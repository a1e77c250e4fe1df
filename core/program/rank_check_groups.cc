// What a rank's program must keep to with each group of parameters: gathers, sums of gradients,
// updates.

#include <fmt/format.h>

#include "core/program/rank_check.h"

namespace ptrain::program {

RankCheck::Broken RankCheck::unshard(const Action& action) {
  Group& gathered = group(action.group);
  if (gathered.shards == 1) return "there are no shards to gather";
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

RankCheck::Broken RankCheck::complete(const Action& action, const Group& reduced) const {
  const int micro_batch = reduced.each_micro_batch ? action.micro_batch : -1;
  if (num_writes(reduced, micro_batch) != required_writes(reduced, micro_batch))
    return fmt::format("g{} has {} of {} gradients", action.group, num_writes(reduced, micro_batch),
                       required_writes(reduced, micro_batch));
  if (reduced.last_write > now(Lane::kCompute))
    return fmt::format("does not wait for the last gradient of g{}", action.group);
  return std::nullopt;
}

RankCheck::Broken RankCheck::reduce(const Action& action) {
  Group& reduced = group(action.group);
  if (reduced.alone()) return "there is nobody to reduce with";
  const bool has_micro_batch =
      action.micro_batch >= 0 && action.micro_batch < layout_.num_micro_batches;
  if (reduced.each_micro_batch && !has_micro_batch) return "no such micro-batch";
  if (reduced.num_reductions == num_reductions(reduced) || reduced.unfinished >= 0)
    return fmt::format("g{} is reduced already", action.group);
  if (auto broken = complete(action, reduced)) return broken;
  reduced.num_reductions += 1;
  if (auto broken = over_replicas(action, reduced)) return broken;
  reduced.unfinished = action.id;
  return std::nullopt;
}

// A tied head and the embedding on two ranks add up their gradients once both are complete, unless
// both are spread.
bool RankCheck::needs_sync(int index) const {
  const int first = pipeline_.rank_of(0), last = pipeline_.rank_of(pipeline_.num_stages() - 1);
  return index == 0 && architecture_.config.tie_word_embeddings && first != last &&
         !pipeline_.spreads_embedding && (stage_rank_ == first || stage_rank_ == last);
}

RankCheck::Broken RankCheck::sync_tied(const Action& action) {
  Group& tied = group(action.group);
  if (!needs_sync(action.group)) return "no other rank holds a copy";
  if (tied.synced > 0) return "a second sum of the copies";
  if (norm_position_ > 0) return "comes after GRAD_NORM";
  if (auto broken = ready(action.group)) return broken;
  tied.synced = 1;
  tied.unfinished = action.id;
  return std::nullopt;
}

RankCheck::Broken RankCheck::sum_over_tensor_ranks(const Action& action) {
  Group& summed = group(action.group);
  if (!needs_sum_[static_cast<std::size_t>(action.group)] || action.attribute("axis") != "tp" ||
      action.attribute("kind") != "sum_gradients")
    return "no such exchange of gradients";
  if (summed.summed > 0) return "a second sum over the tensor axis";
  if (summed.synced > 0 || norm_position_ > 0) return "comes after SYNC_TIED or GRAD_NORM";
  if (auto broken = ready(action.group)) return broken;
  summed.summed = 1;
  summed.unfinished = action.id;
  return std::nullopt;
}

// Where a step has several reductions of a group, replicas add up once, with the last.
RankCheck::Broken RankCheck::over_replicas(const Action& action, const Group& reduced) const {
  const bool early = reduced.replicas > 1 && reduced.num_reductions < num_reductions(reduced);
  if (action.attribute("axis") == (early ? "shard" : "")) return std::nullopt;
  return early ? "replicas add up before the last micro-batch"
               : "sums over part of the data ranks, and no sum follows";
}

// The group's gradients are summed over all data ranks, and whoever asks knows it.
RankCheck::Broken RankCheck::ready(int index) const {
  const Group& group = groups_[static_cast<std::size_t>(index)];
  if (group.last_write > now(Lane::kCompute)) return "does not wait for the last backward";
  if (group.alone() && num_writes(group, -1) != required_writes(group, -1))
    return fmt::format("g{} has {} of {} gradients", index, num_writes(group, -1),
                       required_writes(group, -1));
  if (!group.alone() && group.num_reductions != num_reductions(group))
    return fmt::format("g{} is reduced {} of {} times", index, group.num_reductions,
                       num_reductions(group));
  if (group.unfinished >= 0) return fmt::format("nobody waited for {}", group.unfinished);
  return std::nullopt;
}

RankCheck::Broken RankCheck::norm() const {
  if (norm_position_ > 0) return "a second norm";
  for (int i = 0; i < architecture_.num_groups(); ++i) {
    const Group& group = groups_[static_cast<std::size_t>(i)];
    if (!group.is_held()) continue;
    if (auto broken = ready(i)) return broken;
    if (needs_sum_[static_cast<std::size_t>(i)] && group.summed == 0)
      return fmt::format("gradients of g{} are not added up over the tensor axis", i);
    if (needs_sync(i) && group.synced == 0)
      return fmt::format("the copies of g{} are not added up", i);
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

}  // namespace ptrain::program
