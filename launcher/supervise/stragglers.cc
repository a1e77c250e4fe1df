#include "launcher/supervise/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {

namespace {

constexpr int kLooks = 60;  // of each rank, before anything is said
// Of the looks: how often the one waits at most, and the one in the middle at least.
constexpr double kHardly = 0.1, kMostly = 0.4;
// A slow network: its acknowledgements take so many times as long as those of the one in the
// middle, and at least so many seconds.
constexpr double kFar = 5, kNoticed = 2e-3;

template <class Ranks, class Of>
double median(const Ranks& ranks, Of of) {
  std::vector<double> values;
  for (const auto& rank : ranks) values.push_back(std::invoke(of, rank));
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

double per_step(double seconds, const run::Heartbeat& first, const run::Heartbeat& last) {
  return last.step > first.step ? seconds / static_cast<double>(last.step - first.step) : 0;
}

}  // namespace

double Stragglers::Looks::data_s() const {
  return per_step(last.data_s - first.data_s, first, last);
}

double Stragglers::Looks::compute_s() const {
  const double waited = last.waited_s - first.waited_s;
  return std::max(0.0, per_step(last.steps_s - first.steps_s - waited, first, last) - data_s());
}

Stragglers::Stragglers(std::vector<std::string> nodes)
    : nodes_(std::move(nodes)), ranks_(nodes_.size()) {}

void Stragglers::hear(int rank, const run::Heartbeat& beat) {
  if (beat.phase != "step") return;  // elsewhere ranks differ in what they do
  Looks& looks = ranks_[static_cast<std::size_t>(rank)];
  if (looks.num++ == 0) looks.first = beat;
  looks.last = beat;
  looks.waiting += beat.waiting ? 1 : 0;
  looks.round_trips_s += beat.round_trip_s;
}

std::optional<std::string> Stragglers::news() {
  if (ranks_.size() < 2 || std::ranges::min(ranks_, {}, &Looks::num).num < kLooks)
    return std::nullopt;
  const double middle = median(ranks_, &Looks::share);
  auto found = slow_rank(middle);
  if (!found) found = slow_network(middle);
  std::ranges::fill(ranks_, Looks{});
  return found;
}

std::optional<std::string> Stragglers::slow_rank(double middle) {
  const auto least = std::ranges::min_element(ranks_, {}, &Looks::share);
  const auto rank = static_cast<int>(least - ranks_.begin());
  if (least->share() > kHardly || middle < kMostly) return std::nullopt;
  if (!told_.insert(rank).second) return std::nullopt;
  return fmt::format(
      "rank {} on {} holds the others up: it waits for others in {:.0f} % of {} looks, they in "
      "{:.0f} %; {}",
      rank, nodes_[static_cast<std::size_t>(rank)], 100 * least->share(), least->num, 100 * middle,
      cause(*least));
}

// What takes it longer than the rank in the middle.
std::string Stragglers::cause(const Looks& rank) const {
  const double data = median(ranks_, &Looks::data_s), compute = median(ranks_, &Looks::compute_s);
  const bool by_data = rank.data_s() - data > rank.compute_s() - compute;
  if (by_data)
    return fmt::format("data is slow there: {} a step, elsewhere {}", short_duration(rank.data_s()),
                       short_duration(data));
  return fmt::format("computing is slow there: {} a step, elsewhere {}",
                     short_duration(rank.compute_s()), short_duration(compute));
}

std::optional<std::string> Stragglers::slow_network(double middle_share) {
  const auto far = std::ranges::max_element(ranks_, {}, &Looks::round_trip_s);
  const double middle = median(ranks_, &Looks::round_trip_s);
  const double trip = far->round_trip_s();
  if (middle_share < kMostly || trip < kNoticed || trip < kFar * middle) return std::nullopt;
  const std::string& node = nodes_[static_cast<std::size_t>(far - ranks_.begin())];
  if (!told_nodes_.insert(node).second) return std::nullopt;
  return fmt::format(
      "the network of {} is slow: it takes {} to acknowledge what it is sent, others {}, and ranks "
      "wait for each other in {:.0f} % of the looks",
      node, short_duration(trip), short_duration(middle), 100 * middle_share);
}

}  // namespace ptrain::supervise
