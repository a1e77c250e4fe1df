#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/layers/router_sums.h"

namespace ptrain::execute {

// What routers did in a step, over all ranks.
struct RouterReport {
  double balance_loss = 0;  // means over targets and layers, without coefficients; balanced: 1
  double z_loss = 0;
  double entropy = 0;            // mean over tokens and layers, in nats
  double dropped = 0;            // share of choices
  double largest_load = 0;       // of an expert, as a multiple of the mean of its layer
  std::int64_t idle = 0;         // experts that no token chose
  std::int64_t num_experts = 0;  // of all layers
};

// Sums of ranks travel as numbers that are added up; none where there are no experts.
std::vector<double> to_numbers(const layers::RouterSums& sums);
std::optional<RouterReport> report_of(const std::vector<double>& numbers, std::int64_t num_experts,
                                      std::int64_t num_targets);

}  // namespace ptrain::execute
