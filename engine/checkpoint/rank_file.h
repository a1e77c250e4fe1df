#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "core/dcp/metadata.h"
#include "core/run/manifest.h"
#include "engine/checkpoint/item.h"

namespace ptrain::checkpoint {

// What one rank wrote: its file and the items in it. Gathered by rank 0.
struct RankFile {
  std::string name;  // __R_0.distcp; empty: the rank had nothing to write
  run::ListedFile listed;
  dcp::Metadata content;  // its part of `.metadata`
};

// Writes the tensors of `items` (and, on rank 0, its values) into folder/__R_0.distcp, durably.
// EngineError between two of them once a stop is requested.
RankFile write_rank_file(const std::string& folder, const Items& items, int rank,
                         const std::stop_token& stop);

nlohmann::json to_json(const RankFile& file);
RankFile rank_file_from_json(const nlohmann::json& json);

}  // namespace ptrain::checkpoint
