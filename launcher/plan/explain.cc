#include "launcher/plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "launcher/plan/degrees.h"
#include "launcher/plan/order.h"

namespace ptrain::plan {

namespace {

const Rejected* nearest_of(const std::vector<Rejected>& rejected, std::string_view reason) {
  const auto distance = [](const Rejected& one) { return std::pair(!one.is_nearest, one.excess); };
  const Rejected* nearest = nullptr;
  for (const Rejected& one : rejected)
    if (one.reason == reason && (nearest == nullptr || distance(one) < distance(*nearest)))
      nearest = &one;
  return nearest;
}

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / 1024 / 1024; }

std::string named(const Rejected& rejected) {
  return fmt::format("{}: {}", name_of(rejected.layout), rejected.detail);
}

// What would make the memory suffice, cheapest first.
std::string memory_hint(const mesh::Layout& layout, int num_ranks, const recipe::Parallel& fixed) {
  std::string hint = "give the ranks more memory";
  if (fixed.micro_batch > 1) hint += ", leave parallel.micro_batch free or make it smaller";
  if (fixed.recompute == recipe::Recompute::kNone)
    hint += ", allow parallel.recompute: selective or full";
  if (fixed.recompute == recipe::Recompute::kSelective) hint += ", allow parallel.recompute: full";
  if (fixed.offload == recipe::Offload::kNone) hint += ", allow parallel.offload: optimizer";
  if (num_ranks > 1 && (layout.shard < num_ranks || layout.zero < 3))
    hint += ", allow a larger parallel.shard with zero 3";
  return hint +
         ", use fewer ranks a node (cluster.ranks_per_node), or a smaller model, sequence or "
         "global_batch_tokens";
}

// What would make a node's memory suffice for offloaded state.
std::string node_memory_hint(const recipe::Parallel& fixed) {
  std::string hint = "give the nodes more memory";
  if (fixed.offload == recipe::Offload::kOptimizer) hint += ", leave parallel.offload free";
  if (fixed.shard > 0) hint += ", allow a larger parallel.shard";
  return hint + ", use fewer ranks a node (cluster.ranks_per_node), or a smaller model";
}

std::string rows_hint(const SearchInput& input) {
  return fmt::format(
      "change global_batch_tokens ({}) or cluster.ranks_per_node so that its {} rows of {} tokens "
      "divide over {} ranks",
      input.shape.global_batch_tokens, input.shape.global_batch_tokens / input.shape.sequence,
      input.shape.sequence, input.placement.num_ranks);
}

// Of a second that is faster, but takes more axes.
std::string why_plainer(const Candidate& first, const Candidate& second) {
  return fmt::format(
      "{} takes {:.1f} % longer than {}, which shares rows or experts on more axes: each must save "
      "{:.0f} % of a step",
      name_of(first.layout), (first.predicted.step_s / second.predicted.step_s - 1) * 100,
      name_of(second.layout), kAxisWorth * 100);
}

// The first choice in which one layout is plainer, in the order of the search.
std::string plainer_by(const mesh::Layout& first, const mesh::Layout& second) {
  if (num_axes(first) != num_axes(second)) return "fewer axes that share rows or experts";
  if (first.recompute != second.recompute)
    return first.recompute == recipe::Recompute::kNone ? "it computes nothing again"
                                                       : "it computes less again";
  if (first.shard != second.shard) return "fewer shards";
  if (first.zero != second.zero) return "a lower zero";
  if (first.num_micro_batches != second.num_micro_batches) return "fewer micro-batches";
  return "less gathered ahead";
}

}  // namespace

std::string name_of(const mesh::Layout& layout) {
  std::string name = mesh::to_string(layout);
  if (layout.gathers_each_use()) name += fmt::format(" prefetch{}", layout.prefetch);
  return name;
}

std::vector<run::Rejection> summarize(const std::vector<Rejected>& rejected) {
  std::map<std::string, int> counts;
  for (const Rejected& one : rejected) counts[one.reason] += one.count;
  std::vector<run::Rejection> out;
  for (const auto& [reason, count] : counts)
    out.push_back({reason, count, named(*nearest_of(rejected, reason))});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return out;
}

std::string why_first(const Ranking& ranking) {
  if (ranking.ranked.size() < 2) return "";
  const Candidate& first = ranking.ranked[0];
  const Candidate& second = ranking.ranked[1];
  const double gap = second.predicted.step_s / first.predicted.step_s - 1;
  if (gap < -kTie) return why_plainer(first, second);
  if (std::abs(gap) <= kTie) {
    const double saved_mib =
        mib(program::total_bytes(second.bytes) - program::total_bytes(first.bytes));
    const std::string both = fmt::format("{} and {} are within {:.0f} %, a tie: the first ",
                                         name_of(first.layout), name_of(second.layout), kTie * 100);
    if (saved_mib >= 1) return both + fmt::format("needs {:.0f} MiB less a rank", saved_mib);
    return both + "is plainer: " + plainer_by(first.layout, second.layout);
  }
  std::size_t most = 0;
  const auto saved = [&](std::size_t t) { return second.terms_s[t] - first.terms_s[t]; };
  for (std::size_t t = 1; t < kNumTerms; ++t)
    if (saved(t) > saved(most)) most = t;
  return fmt::format(
      "{} is {:.1f} % faster than {}, most of it in {}: {:.3g} ms a step against {:.3g}",
      name_of(first.layout), gap * 100, name_of(second.layout), to_string(static_cast<Term>(most)),
      first.terms_s[most] * 1e3, second.terms_s[most] * 1e3);
}

std::string why_recompute(const Ranking& ranking) {
  if (ranking.ranked.empty()) return "";
  const Candidate& first = ranking.ranked.front();
  if (first.layout.recompute == recipe::Recompute::kNone) return "";
  mesh::Layout whole = first.layout;
  whole.recompute = recipe::Recompute::kNone;
  // What is ruled out by its memory may stand for what gathers more ahead.
  const auto is_whole = [&](mesh::Layout other) {
    other.prefetch = whole.prefetch;
    return other == whole;
  };
  const std::string begin = fmt::format("{}: ", recipe::to_string(first.layout.recompute));
  for (const Candidate& other : ranking.ranked)
    if (other.layout == whole)
      return begin +
             fmt::format("{:.0f} MiB less a rank than {}, for {:.1f} % of its step",
                         mib(program::total_bytes(other.bytes) - program::total_bytes(first.bytes)),
                         name_of(whole),
                         100 * (first.predicted.step_s / other.predicted.step_s - 1));
  for (const Rejected& other : ranking.rejected)
    if (is_whole(other.layout))
      return begin + fmt::format("{} is out: {} ({})", name_of(whole), other.reason, other.detail);
  return "";
}

std::string how_searched(const Effort& effort) {
  std::string text = fmt::format(
      "{} choices of degrees, {} of them looked into: of {} layouts found there {} were "
      "simulated, ",
      effort.num_degrees, effort.num_degrees_opened, effort.num_layouts, effort.num_simulated);
  if (effort.num_left == 0) return text + "the others are too large or slower for certain";
  return text +
         fmt::format(
             "{} beginnings of layouts that may be faster by their bounds were left for want of "
             "time",
             effort.num_left);
}

std::string experts_bound(const Ranking& ranking) {
  if (ranking.ranked.empty() || ranking.expert_load == 0) return "";
  const Candidate& first = ranking.ranked.front();
  const std::int64_t planned = program::total_bytes(first.bytes);
  if (first.most_bytes <= planned) return "";
  return fmt::format(
      "{}memory is planned for ranks whose experts get {:.3g} times an even share of tokens; were "
      "all tokens to choose the experts of one rank, it would need {:.0f} MiB in place of {:.0f}, "
      "and may have {:.0f}",
      first.most_bytes > ranking.memory ? "warning: " : "", ranking.expert_load,
      mib(first.most_bytes), mib(planned), mib(ranking.memory));
}

Error nothing_fits(const SearchInput& input, const Ranking& ranking) {
  const auto reasons = summarize(ranking.rejected);
  std::string message =
      fmt::format("no layout of shape '{}' can run on {}", ranking.shape,
                  ranks_text(static_cast<std::size_t>(input.placement.num_ranks)));
  std::map<Shortage, const Rejected*> nearest_by;
  for (const auto& reason : reasons) {
    message +=
        fmt::format("\n  {} x {} (nearest: {})", reason.count, reason.reason, reason.nearest);
    const Rejected* nearest = nearest_of(ranking.rejected, reason.reason);
    nearest_by[nearest->shortage] = nearest;
  }
  std::string hint = "free the fields that parallel (or the shape's own parallel) fixes";
  const auto short_by = [&](const Rejected& nearest, const char* of) {
    return fmt::format("\n  short by {}{:.0f} MiB a {}", nearest.is_bound ? "at least " : "",
                       std::ceil(nearest.excess / 1024 / 1024), of);
  };
  if (nearest_by.contains(Shortage::kRows)) hint = rows_hint(input);
  const Rejected* rank = nearest_by[Shortage::kRankMemory];
  if (rank != nullptr) {
    message += short_by(*rank, "rank");
    hint = memory_hint(rank->layout, input.placement.num_ranks, input.fixed);
    if (input.keeps_copy) hint += "; checkpoint.async=false saves the memory of a copy";
  }
  if (const Rejected* node = nearest_by[Shortage::kNodeMemory]) {
    message += short_by(*node, "node");
    const std::string node_hint = node_memory_hint(input.fixed);
    hint = rank != nullptr ? node_hint + "; or " + hint : node_hint;
  }
  return {ExitCode::kNothingFits, std::move(message), std::move(hint), {}};
}

}  // namespace ptrain::plan
