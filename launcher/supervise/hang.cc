#include "launcher/supervise/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ptrain::supervise {

namespace {

constexpr double kFloor = 30, kSteps = 10, kSlowPhase = 5;
constexpr double kSilent = 2.5;  // seconds; heartbeats come every second

bool is_slow(const LastHeard& rank) {
  return rank.phase.starts_with("validation") || rank.phase.starts_with("checkpoint");
}

struct Mark {
  std::string_view communicator;
  std::int64_t sequence = 0;
};

// None for a window's epochs and for exchanges: they are counted apart from the collectives of the
// same communicator.
std::optional<Mark> mark_of(const LastHeard& rank) {
  const std::string_view text = rank.collective;
  const auto verb = text.find(' '), number = text.rfind('#');
  if (verb == std::string_view::npos || number == std::string_view::npos || number < verb)
    return std::nullopt;
  if (text.substr(verb + 1).starts_with("window") || text.substr(verb + 1).starts_with("exchange"))
    return std::nullopt;
  Mark mark{text.substr(0, verb), 0};
  std::from_chars(text.data() + number + 1, text.data() + text.size(), mark.sequence);
  return mark;
}

// The rank behind the others of its communicator; none where no communicator or several have one.
std::optional<int> lagging(std::span<const LastHeard> ranks) {
  struct Behind {
    int rank = 0;
    std::int64_t sequence = 0;
    bool differ = false;
  };
  std::map<std::string_view, Behind> by_communicator;
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    const auto mark = mark_of(ranks[static_cast<std::size_t>(i)]);
    if (!mark || ranks[static_cast<std::size_t>(i)].said_goodbye) continue;
    const auto [entry, is_first] =
        by_communicator.try_emplace(mark->communicator, Behind{i, mark->sequence, false});
    Behind& behind = entry->second;
    behind.differ = behind.differ || mark->sequence != behind.sequence;
    if (mark->sequence < behind.sequence) behind = {i, mark->sequence, true};
  }
  std::set<int> found;
  for (const auto& [name, behind] : by_communicator)
    if (behind.differ) found.insert(behind.rank);
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

// "ranks 0, 2 and 5 more wait in X"
std::string waiting_text(const std::vector<int>& ranks, std::string_view collective) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text + fmt::format(" wait{} in {}", ranks.size() == 1 ? "s" : "", collective);
}

// The only rank with the lowest key, if the others differ from it.
template <class Key>
std::optional<int> lowest(std::span<const LastHeard> ranks, Key key) {
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
                  std::span<const LastHeard> ranks) {
  double limit = configured_s;
  if (limit <= 0) {
    std::vector<double> sorted(step_times.begin(), step_times.end());
    std::ranges::sort(sorted);
    limit = sorted.empty() ? kFloor : std::max(kFloor, kSteps * sorted[sorted.size() / 2]);
  }
  const bool slow = step_times.empty() || std::ranges::any_of(ranks, is_slow);
  return slow ? limit * kSlowPhase : limit;
}

int suspect(std::span<const LastHeard> ranks, double now) {
  const auto silent = std::ranges::min_element(
      ranks, {}, [&](const LastHeard& rank) { return rank.said_goodbye ? now : rank.heard_at; });
  if (silent != ranks.end() && now - silent->heard_at > kSilent && !silent->said_goodbye)
    return static_cast<int>(silent - ranks.begin());
  if (const auto rank = lowest(ranks, [](const LastHeard& r) { return r.step; })) return *rank;
  if (const auto rank = lowest(ranks, [](const LastHeard& r) { return r.waiting; })) return *rank;
  return lagging(ranks).value_or(-1);
}

std::string describe_hang(std::span<const LastHeard> ranks, int suspect, double seconds) {
  std::string text = fmt::format("no progress for {:.0f} s", seconds);
  if (suspect >= 0) {
    const LastHeard& rank = ranks[static_cast<std::size_t>(suspect)];
    text += fmt::format(" (step {}, {}, {} {})", rank.step, rank.phase,
                        rank.waiting ? "waits in" : "last collective",
                        rank.collective.empty() ? "none" : rank.collective);
  }
  std::map<std::string_view, std::vector<int>> waiting;
  for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
    const LastHeard& rank = ranks[static_cast<std::size_t>(i)];
    if (i != suspect && rank.waiting && !rank.said_goodbye) waiting[rank.collective].push_back(i);
  }
  constexpr std::size_t kMostCollectives = 4;
  std::size_t count = 0;
  for (const auto& [collective, waiters] : waiting)
    if (count++ < kMostCollectives) text += "; " + waiting_text(waiters, collective);
  return text;
}

}  // namespace ptrain::supervise
