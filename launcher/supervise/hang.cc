#include "launcher/supervise/hang.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace ptrain::supervise {

namespace {

constexpr double kFloor = 30, kSteps = 10, kSlowPhase = 5;
constexpr double kSilent = 2.5;  // seconds; heartbeats come every second

bool is_slow(const RankState& rank) {
  return rank.phase.starts_with("validation") || rank.phase.starts_with("checkpoint");
}

std::int64_t sequence_of(const RankState& rank) {
  const auto mark = rank.collective.rfind('#');
  std::int64_t value = 0;
  if (mark != std::string::npos) {
    const char* end = rank.collective.data() + rank.collective.size();
    std::from_chars(rank.collective.data() + mark + 1, end, value);
  }
  return value;
}

// The only rank with the lowest key, if the others differ from it.
template <class Key>
std::optional<int> lowest(std::span<const RankState> ranks, Key key) {
  std::optional<int> found;
  bool differ = false;
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    const auto& rank = ranks[static_cast<std::size_t>(i)];
    if (rank.said_goodbye) continue;
    if (!found) {
      found = i;
      continue;
    }
    const auto best = key(ranks[static_cast<std::size_t>(*found)]);
    differ = differ || key(rank) != best;
    if (key(rank) < best) found = i;
  }
  return differ ? found : std::nullopt;
}

}  // namespace

double hang_limit(double configured_s, std::span<const double> step_times,
                  std::span<const RankState> ranks) {
  double limit = configured_s;
  if (limit <= 0) {
    std::vector<double> sorted(step_times.begin(), step_times.end());
    std::ranges::sort(sorted);
    limit = sorted.empty() ? kFloor : std::max(kFloor, kSteps * sorted[sorted.size() / 2]);
  }
  const bool slow = step_times.empty() || std::ranges::any_of(ranks, is_slow);
  return slow ? limit * kSlowPhase : limit;
}

int suspect(std::span<const RankState> ranks, double now) {
  const auto silent = std::ranges::min_element(
      ranks, {}, [&](const RankState& rank) { return rank.said_goodbye ? now : rank.heard_at; });
  if (silent != ranks.end() && now - silent->heard_at > kSilent && !silent->said_goodbye)
    return static_cast<int>(silent - ranks.begin());
  if (const auto rank = lowest(ranks, [](const RankState& r) { return r.step; })) return *rank;
  const auto in_collective = [](const RankState& r) { return r.phase == "collective"; };
  if (const auto rank = lowest(ranks, in_collective)) return *rank;
  return lowest(ranks, sequence_of).value_or(-1);
}

}  // namespace ptrain::supervise
