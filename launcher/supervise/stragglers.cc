#include "launcher/supervise/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {

namespace {

// Of each rank, before anything is said: heartbeats, and steps, in whose middle they may come.
constexpr int kLooks = 20, kSteps = 4;
// Of the time in steps: what the one in the middle waits at least, and what part of that the one
// that holds it up waits at most.
constexpr double kMuch = 0.25, kHardly = 0.25;
// A slow network: its acknowledgements take so many times as long as the others', and at least so
// many seconds.
constexpr double kFar = 5, kNoticed = 2e-3;

// Of all, or of all others than one.
template <class Ranks, class Of>
double median(const Ranks& ranks, Of of, const typename Ranks::value_type* left_out = nullptr) {
  std::vector<double> values;
  for (const auto& rank : ranks)
    if (&rank != left_out) values.push_back(std::invoke(of, rank));
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace

double Stragglers::Looks::compute_of_step_s() const {
  return std::max(0.0, steps_s - data_s - waited_s) / static_cast<double>(num_steps);
}

Stragglers::Stragglers(std::vector<std::string> nodes)
    : nodes_(std::move(nodes)), ranks_(nodes_.size()) {}

// Between two heartbeats within steps; elsewhere ranks differ in what they do.
void Stragglers::hear(int rank, const run::Heartbeat& beat) {
  Looks& looks = ranks_[static_cast<std::size_t>(rank)];
  const run::Heartbeat last = std::exchange(looks.last, beat);
  if (beat.phase != "step" || last.phase != "step") return;
  looks.num_beats += 1;
  looks.num_steps += beat.step - last.step;
  looks.steps_s += beat.steps_s - last.steps_s;
  looks.data_s += beat.data_s - last.data_s;
  looks.waited_s += beat.waited_s - last.waited_s;
  looks.round_trips_s += beat.round_trip_s;
}

bool Stragglers::has_enough() const {
  return ranks_.size() >= 2 && std::ranges::all_of(ranks_, [](const Looks& looks) {
           return looks.num_beats >= kLooks && looks.num_steps >= kSteps;
         });
}

std::optional<std::string> Stragglers::news() {
  if (!has_enough()) return std::nullopt;
  const double middle = median(ranks_, &Looks::share);
  auto found = slow_rank(middle);
  if (!found) found = slow_network(middle);
  for (Looks& looks : ranks_) looks = Looks{.last = looks.last};
  return found;
}

std::optional<std::string> Stragglers::slow_rank(double middle) {
  const auto least = std::ranges::min_element(ranks_, {}, &Looks::share);
  const auto rank = static_cast<int>(least - ranks_.begin());
  if (middle < kMuch || least->share() > kHardly * middle) return std::nullopt;
  if (!told_.insert(rank).second) return std::nullopt;
  return fmt::format(
      "rank {} on {} holds the others up: it waits for others {:.0f} % of the time, they {:.0f} %; "
      "{}",
      rank, nodes_[static_cast<std::size_t>(rank)], 100 * least->share(), 100 * middle,
      cause(*least));
}

// What takes it longer than the one in the middle of the others.
std::string Stragglers::cause(const Looks& rank) const {
  const double data_s = median(ranks_, &Looks::data_of_step_s, &rank);
  const double compute_s = median(ranks_, &Looks::compute_of_step_s, &rank);
  const bool by_data = rank.data_of_step_s() - data_s > rank.compute_of_step_s() - compute_s;
  if (by_data)
    return fmt::format("data is slow there: {} a step, elsewhere {}",
                       short_duration(rank.data_of_step_s()), short_duration(data_s));
  return fmt::format("computing is slow there: {} a step, elsewhere {}",
                     short_duration(rank.compute_of_step_s()), short_duration(compute_s));
}

std::optional<std::string> Stragglers::slow_network(double middle_share) {
  const auto far = std::ranges::max_element(ranks_, {}, &Looks::round_trip_s);
  const double middle = median(ranks_, &Looks::round_trip_s, &*far);
  const double trip = far->round_trip_s();
  if (middle_share < kMuch || trip < kNoticed || trip < kFar * middle) return std::nullopt;
  const std::string& node = nodes_[static_cast<std::size_t>(far - ranks_.begin())];
  if (!told_nodes_.insert(node).second) return std::nullopt;
  return fmt::format(
      "the network of {} is slow: it takes {} to acknowledge what it is sent, others {}, and ranks "
      "wait for each other {:.0f} % of the time",
      node, short_duration(trip), short_duration(middle), 100 * middle_share);
}

}  // namespace ptrain::supervise
