#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "core/base/result.h"
#include "launcher/supervise/hang.h"

namespace ptrain::supervise {

// logs/attempt-N/ranks.json: what each rank said last, so that anyone can see where a run stands
// while it goes on. An array of {rank, step, phase, collective, waiting, resident_bytes, silent_s,
// ended}.
//
// Replaces it by rename, without waiting for the disk: it is written every second, less
// often with more than a thousand ranks, and worth nothing after a loss of power.
Status write_rank_board(const std::string& path, std::span<const LastHeard> ranks, double now);

// Null where there is none that can be read.
nlohmann::json read_rank_board(const std::string& path);

// "rank 1: step 12, validation, waits in dp all_reduce#31, 196 MiB, heard 0.4 s ago".
std::string rank_line(const nlohmann::json& rank);

}  // namespace ptrain::supervise
