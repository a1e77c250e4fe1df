#include "engine/execute/router_report.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ptrain::execute {
namespace {

constexpr std::size_t kBeforeLoads = 5;

void add_loads(std::span<const double> layer, RouterReport& report) {
  double total = 0;
  for (const double load : layer) total += load;
  if (total == 0) return;
  report.largest_load = std::max(
      report.largest_load, std::ranges::max(layer) * static_cast<double>(layer.size()) / total);
  report.idle += std::ranges::count(layer, 0.0);
}

}  // namespace

std::vector<double> to_numbers(const layers::RouterSums& sums) {
  if (sums.loads.empty()) return {};
  std::vector<double> numbers = {sums.balance_loss, sums.z_loss, sums.entropy, sums.num_tokens,
                                 sums.num_dropped};
  numbers.insert(numbers.end(), sums.loads.begin(), sums.loads.end());
  return numbers;
}

std::optional<RouterReport> report_of(const std::vector<double>& numbers, std::int64_t num_experts,
                                      std::int64_t num_targets) {
  if (numbers.empty()) return std::nullopt;
  const auto loads = std::span(numbers).subspan(kBeforeLoads);
  const auto size = static_cast<std::size_t>(num_experts);
  RouterReport report;
  report.num_experts = std::ssize(loads);
  double choices = 0;
  for (std::size_t begin = 0; begin < loads.size(); begin += size)
    add_loads(loads.subspan(begin, size), report);
  for (const double load : loads) choices += load;
  const double targets = static_cast<double>(std::max<std::int64_t>(num_targets, 1) *
                                             (std::ssize(loads) / num_experts));
  report.balance_loss = numbers[0] / targets;
  report.z_loss = numbers[1] / targets;
  report.entropy = numbers[2] / std::max(numbers[3], 1.0);
  report.dropped = numbers[4] / std::max(choices, 1.0);
  return report;
}

}  // namespace ptrain::execute
