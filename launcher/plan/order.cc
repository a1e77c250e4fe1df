#include "launcher/plan/order.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace ptrain::plan {

namespace {

using mesh::Layout;

// Smaller is plainer.
auto complexity(const Layout& layout) {
  return std::tuple(layout.pp, layout.num_virtual, layout.schedule, layout.tp, layout.cp,
                    layout.ulysses, layout.ep, layout.recompute, layout.shard, layout.zero,
                    layout.num_micro_batches, layout.prefetch);
}

double weighed_seconds(const Candidate& candidate) {
  return plan::weighed_seconds(candidate.layout, candidate.predicted.step_s);
}

}  // namespace

int num_axes(const Layout& layout) {
  return (layout.pp > 1) + (layout.tp > 1) + (layout.cp > 1) + (layout.ep > 1);
}

double weighed_seconds(const Layout& layout, double seconds) {
  return seconds * std::pow(1 + kAxisWorth, num_axes(layout));
}

bool is_plainer(const Layout& a, const Layout& b) { return complexity(a) < complexity(b); }

void rank_all(std::vector<Candidate>& candidates, std::int64_t memory) {
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(weighed_seconds(a), complexity(a.layout)) <
           std::tuple(weighed_seconds(b), complexity(b.layout));
  });
  if (candidates.empty()) return;
  const double limit = weighed_seconds(candidates.front()) * (1 + kTie);
  const auto tied = std::ranges::partition_point(
      candidates, [&](const Candidate& c) { return weighed_seconds(c) <= limit; });
  const std::int64_t eighth = std::max<std::int64_t>(1, memory / 8);
  std::stable_sort(candidates.begin(), tied, [&](const Candidate& a, const Candidate& b) {
    return std::tuple(num_axes(a.layout), program::total_bytes(a.bytes) / eighth,
                      complexity(a.layout)) < std::tuple(num_axes(b.layout),
                                                         program::total_bytes(b.bytes) / eighth,
                                                         complexity(b.layout));
  });
}

}  // namespace ptrain::plan
