#include "engine/train/router_watch.h"

#include <fmt/format.h>

#include <utility>

namespace ptrain::train {
namespace {

constexpr int kManySteps = 20;
constexpr double kManyDropped = 0.1;

// Whether `count` has just become many steps on end.
bool is_time(bool happens, int& count, bool& told) {
  count = happens ? count + 1 : 0;
  return count >= kManySteps && !std::exchange(told, told || count >= kManySteps);
}

}  // namespace

std::optional<std::string> RouterWatch::step(const execute::RouterReport& report) {
  const bool idle = is_time(report.idle > 0, idle_steps_, told_idle_);
  const bool dropping = is_time(report.dropped > kManyDropped, dropping_steps_, told_dropping_);
  if (idle)
    return fmt::format(
        "in each of the last {} steps some experts had no token, {} of {} in this one, and the "
        "largest load was {:.1f} times the mean; raise model.router_aux_loss_coef or "
        "model.router_bias_update_rate",
        kManySteps, report.idle, report.num_experts, report.largest_load);
  if (dropping)
    return fmt::format(
        "{:.0f} % of all choices of experts were dropped; raise model.expert_capacity_factor, or "
        "model.router_aux_loss_coef so that loads are even",
        100 * report.dropped);
  return std::nullopt;
}

}  // namespace ptrain::train
