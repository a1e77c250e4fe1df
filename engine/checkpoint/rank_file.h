#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/dcp/metadata.h"
#include "core/run/manifest.h"
#include "engine/checkpoint/file_plan.h"
#include "engine/checkpoint/item.h"

namespace ptrain::checkpoint {

// What one rank wrote: its file and the items in it.
struct RankFile {
  std::string name;  // __R_0.distcp; empty: the rank had nothing to write
  run::ListedFile listed;
  dcp::Metadata content;  // its part of `.metadata`
};

// Writes the tensors of `items` (and, on rank 0, its values) into folder/__R_0.distcp, durably.
// EngineError between two of them once a stop is requested.
RankFile write_rank_file(const std::string& folder, const Items& items, int rank,
                         const std::stop_token& stop);

// What rank 0 cannot tell by itself of another rank's file: a few bytes for each block of it.
struct RankReport {
  std::int64_t bytes = 0;           // 0: the rank had nothing to write
  std::vector<std::string> hashes;  // as in run::ListedFile
  std::uint64_t content = 0;        // digest_of what it wrote
};
std::string to_bytes(const RankReport& report);
RankReport report_from_bytes(const std::string& bytes);

}  // namespace ptrain::checkpoint
