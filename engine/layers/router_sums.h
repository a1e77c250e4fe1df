#pragma once

#include <cstdint>
#include <vector>

namespace ptrain::layers {

// What routers did: sums over tokens (those of documents with a target) and over layers.
struct RouterSums {
  double balance_loss = 0;  // of a row, without its coefficient, times the row's targets
  double z_loss = 0;        // the same
  double entropy = 0;       // of a token's probabilities, in nats
  double num_tokens = 0;
  double num_dropped = 0;     // choices
  std::vector<double> loads;  // choices of each expert, layer by layer; empty: there are none
  std::int64_t num_experts = 0;

  // Room for the loads of so many layers; ranks add up, so it is the same on all of them.
  void begin(std::int64_t num_layers, std::int64_t experts) {
    num_experts = experts;
    loads.resize(static_cast<std::size_t>(num_layers * experts), 0);
  }
};

}  // namespace ptrain::layers
