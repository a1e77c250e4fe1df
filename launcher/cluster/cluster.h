#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace ptrain::cluster {

struct Node {
  std::string name;
  int num_cores = 1;                  // physical cores that we may use
  std::int64_t memory_bytes = 0;      // that we may use
  int num_gpus = 0;                   // where there are some, ranks run on them alone
  std::int64_t gpu_memory_bytes = 0;  // of one
  bool operator==(const Node&) const = default;
};

// Seconds of moving bytes between the ranks of a group: latency for each peer, then bytes over a
// rate.
struct TransferCost {
  double latency_s = 0;    // for each peer
  double bytes_per_s = 1;  // bytes that one rank receives
  bool operator==(const TransferCost&) const = default;
};

// What products with weights of width x width reach, as a share of the best rate.
struct WidthShare {
  std::int64_t width = 0;
  double forward = 1;
  double backward = 1;
  bool operator==(const WidthShare&) const = default;
};

// Seconds of one attention head over one document: of a block of queries, of each pair of a
// query and a key that is multiplied in it, and of each element of the head of such a pair.
struct HeadCost {
  double block_s = 0;
  double pair_s = 0;
  double pair_dim_s = 0;
  bool operator==(const HeadCost&) const = default;
};

struct AttentionCost {
  std::int64_t block_rows = 64;  // queries of a block; keys up to its last query are multiplied
  HeadCost forward;
  HeadCost backward;
  bool operator==(const AttentionCost&) const = default;
};

struct PassRate {
  double forward = 1;
  double backward = 1;
  bool operator==(const PassRate&) const = default;
};

// Of where offloaded state waits: the disk that runs are written to, past the page cache; beside
// GPUs, the host's memory.
struct DiskRate {
  double read_bytes_per_s = 1;
  double write_bytes_per_s = 1;
  bool operator==(const DiskRate&) const = default;
};

// What one rank of a full node reaches while all the others are as busy as it is. Rates are those
// of fp32 where nothing else is said; work in fp64 takes as much longer as its matmuls do.
struct Figures {
  double matmul_float32 = 0;  // best FLOP/s of one thread
  double matmul_float64 = 0;
  double matmul_bfloat16 = 0;             // summed in fp32
  std::vector<WidthShare> matmul_shares;  // ascending widths, at least one
  std::vector<WidthShare> matmul_shares_bfloat16;
  AttentionCost attention;
  AttentionCost attention_bfloat16;  // where layers multiply bfloat16
  PassRate kept_bytes_per_s;         // norms, rotary, SwiGLU, copies: bytes of the stash they serve
  double memory_bytes_per_s = 0;     // read and written
  double adamw_parameters_per_s = 0;
  double cross_entropy_logits_per_s = 0;
  TransferCost all_gather;
  TransferCost reduce_scatter;
  TransferCost window;  // adding or copying the peers' gradients in a shared window
  DiskRate disk;
  bool assumed = true;  // documented defaults: nothing was measured
  std::string source;   // where they come from, for people

  double matmul(DType dtype) const {
    if (dtype == DType::kBFloat16) return matmul_bfloat16;
    return dtype == DType::kFloat64 ? matmul_float64 : matmul_float32;
  }
  const AttentionCost& attention_of(DType dtype) const {
    return dtype == DType::kBFloat16 ? attention_bfloat16 : attention;
  }
  const std::vector<WidthShare>& shares(DType dtype) const {
    return dtype == DType::kBFloat16 ? matmul_shares_bfloat16 : matmul_shares;
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

// Sets what follows from matmul_float32, memory_bytes_per_s and reduce_scatter where nobody
// measured it: with the proportions that this engine has on a virtual server core with AVX-512, and
// as if bf16 gained nothing.
void derive_kernel_figures(Figures& figures);

// Figures to plan with where no probe was made: a slow core of a server of 2020, shared memory
// between processes. Good enough to order layouts, not to tell the time.
Figures default_figures();
// The same where ranks run on GPUs: of a data centre of 2020, at what programs reach of its data
// sheet.
Figures default_gpu_figures();
TransferCost default_link();      // 10 Gbit/s Ethernet
TransferCost default_gpu_link();  // eight ports of 200 Gbit/s (NVIDIA DGX A100), four fifths of it
// With the defaults for GPUs where the first of the nodes, at least one, has some.
Cluster unmeasured(std::string name, std::vector<Node> nodes);

}  // namespace ptrain::cluster
