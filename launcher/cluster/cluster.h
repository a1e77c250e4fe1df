#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace ptrain::cluster {

struct Node {
  std::string name;
  int num_cores = 1;              // physical cores that we may use
  std::int64_t memory_bytes = 0;  // that we may use
  bool operator==(const Node&) const = default;
};

// Seconds of moving bytes between the ranks of a group: latency for each peer, then bytes over a
// rate.
struct TransferCost {
  double latency_s = 0;    // for each peer
  double bytes_per_s = 1;  // bytes that one rank receives
  bool operator==(const TransferCost&) const = default;
};

// What one rank of a full node reaches while all the others are as busy as it is.
struct Figures {
  double matmul_float32 = 0;  // FLOP/s of one thread
  double matmul_float64 = 0;
  double memory_bytes_per_s = 0;  // read and written
  TransferCost all_gather;
  TransferCost reduce_scatter;
  bool assumed = true;  // documented defaults: nothing was measured
  std::string source;   // where they come from, for people

  double matmul(DType dtype) const {
    return dtype == DType::kFloat64 ? matmul_float64 : matmul_float32;
  }
  bool operator==(const Figures&) const = default;
};

struct Cluster {
  std::string name;
  std::vector<Node> nodes;
  Figures figures;
  TransferCost link;  // between two nodes
  bool operator==(const Cluster&) const = default;
};

// Figures to plan with where no probe was made: a slow core of a server of 2020, shared memory
// between processes. Good enough to order layouts, not to tell the time.
Figures default_figures();
TransferCost default_link();  // 10 Gbit/s Ethernet

}  // namespace ptrain::cluster
