#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/comm/communicator.h"

namespace ptrain::probe {

// Each measures one kind of work of the engine on every rank of `world` at once and returns its
// part of the figures (launcher/cluster/figures_json.h). Collective.

// The best rate by dtype: {float32, float64, bfloat16}, FLOP/s.
nlohmann::json matmul_rates(comm::Communicator& world);
// Shares of the best rate by the width of the weights: [{width, forward, backward}].
nlohmann::json matmul_shares(comm::Communicator& world, DType dtype, double best_flops_per_s);
// Of one head: {block_rows, forward {block_s, pair_s, pair_dim_s}, backward {..}}: the seconds of a
// block of queries, of a pair of query and key in it, and of an element of both. In layers that
// multiply in compute_dtype.
nlohmann::json attention_seconds(comm::Communicator& world, DType compute_dtype);
// Of what a block does beside its products: {forward, backward}, bytes of its stash a second.
nlohmann::json kept_bytes_per_s(comm::Communicator& world);
double memory_bytes_per_s(comm::Communicator& world);
double adamw_parameters_per_s(comm::Communicator& world);
double cross_entropy_logits_per_s(comm::Communicator& world);
// Of the disk under the working directory, where runs are written: {read_bytes_per_s,
// write_bytes_per_s} as offloaded state is read and written; null where it cannot be.
nlohmann::json disk_rates(comm::Communicator& world);

}  // namespace ptrain::probe
