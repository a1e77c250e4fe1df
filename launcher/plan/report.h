#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/plan/plan.h"

namespace ptrain::plan {

// A planning for people: for each shape its layouts, best first, with step time, tokens a second,
// MFU and MiB a rank by class. `explain` adds every layout, why the first is first, and what ruled
// out the others.
std::string to_text(const Planning& planning, bool explain);

// A planning for programs (docs/plan-json.md); fields are only ever added while `version` stays 1:
//   version, build, recipe, cluster, num_ranks, peak_flops_per_rank, figures, documents,
//   notes [text],
//   shapes [{name, threads, program_hash, why, expert_load,
//            search {degrees, degrees_opened, layouts, simulated, left},
//            ranked [{layout, dp, shard, tp, pp, virtual, schedule, ring, ulysses, ep, etp, zero,
//                     micro_batch, num_micro_batches, recompute, prefetch, most_bytes,
//                     step_s, low_s, high_s, tokens_per_s, mfu, bubble, exposed_s,
//                     terms_s {forward, backward, recompute, gather, reduce, optimizer},
//                     bytes {parameters, gradients, optimizer, gather, stash, temporary,
//                            communication, runtime}}],
//            rejected [{reason, count, nearest}]}]
nlohmann::json to_json(const Planning& planning);

}  // namespace ptrain::plan
