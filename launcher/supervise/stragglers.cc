#include "launcher/supervise/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ptrain::supervise {

namespace {

constexpr int kLooks = 60;  // of each rank, before anything is said
// Of the looks: how often the one waits at most, and the one in the middle at least.
constexpr double kHardly = 0.1, kMostly = 0.4;

}  // namespace

Stragglers::Stragglers(std::vector<std::string> nodes)
    : nodes_(std::move(nodes)), ranks_(nodes_.size()) {}

void Stragglers::hear(int rank, const run::Heartbeat& beat) {
  if (beat.phase != "step") return;  // elsewhere ranks differ in what they do
  Looks& looks = ranks_[static_cast<std::size_t>(rank)];
  ++looks.num;
  looks.waiting += beat.waiting ? 1 : 0;
}

std::optional<std::string> Stragglers::news() {
  if (ranks_.size() < 2 || std::ranges::min(ranks_, {}, &Looks::num).num < kLooks)
    return std::nullopt;
  std::vector<double> shares;
  for (const Looks& looks : ranks_) shares.push_back(looks.share());
  const auto least = std::ranges::min_element(shares);
  const auto rank = static_cast<int>(least - shares.begin());
  const double lowest = *least;
  std::ranges::nth_element(shares, shares.begin() + std::ssize(shares) / 2);
  const double middle = shares[shares.size() / 2];
  std::ranges::fill(ranks_, Looks{});
  if (lowest > kHardly || middle < kMostly) return std::nullopt;
  if (std::exchange(told_, rank) == rank) return std::nullopt;
  return fmt::format(
      "rank {} on {} holds the others up: it waits for others in {:.0f} % of {} looks, they in "
      "{:.0f} "
      "%; it computes or reads data more slowly",
      rank, nodes_[static_cast<std::size_t>(rank)], 100 * lowest, kLooks, 100 * middle);
}

}  // namespace ptrain::supervise
