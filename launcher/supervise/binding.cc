#include "launcher/supervise/binding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace ptrain::supervise {

namespace {

constexpr int kMostCpus = 1 << 16;

}  // namespace

std::set<int> cpus_in(std::string_view list) {
  std::set<int> cpus;
  while (!list.empty()) {
    const auto part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    int first = -1, last = -1;
    const char* const end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, first);
    last = first;
    if (read.ec == std::errc() && read.ptr != end) std::from_chars(read.ptr + 1, end, last);
    if (first < 0 || last < first || last > kMostCpus) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

Binding::Binding(std::vector<std::string> nodes, int threads, bool bound)
    : nodes_(std::move(nodes)), cpus_(nodes_.size()), threads_(threads), bound_(bound) {}

std::string Binding::hear(int rank, std::string_view cpus) {
  const auto index = static_cast<std::size_t>(rank);
  cpus_[index] = cpus_in(cpus);
  if (cpus_[index].empty()) return "";
  std::string odd = too_few(rank);
  if (odd.empty() && bound_) odd = shared(rank);
  return odd.empty() || !told_.insert(nodes_[index]).second ? "" : odd;
}

std::string Binding::too_few(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (std::ssize(cpus_[index]) >= threads_) return "";
  return fmt::format("rank {} on {} may run on CPU {} only, and its plan has {} threads", rank,
                     nodes_[index], fmt::join(cpus_[index], ", "), threads_);
}

std::string Binding::shared(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  for (std::size_t other = 0; other < cpus_.size(); ++other) {
    std::vector<int> both;
    if (other == index || nodes_[other] != nodes_[index]) continue;
    std::ranges::set_intersection(cpus_[index], cpus_[other], std::back_inserter(both));
    if (!both.empty())
      return fmt::format("ranks {} and {} on {} share CPU {}, and the plan gives each its own",
                         std::min<std::size_t>(other, index), std::max<std::size_t>(other, index),
                         nodes_[index], fmt::join(both, ", "));
  }
  return "";
}

}  // namespace ptrain::supervise
