#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/rank_file.h"

namespace ptrain::checkpoint {

// The whole `.metadata` from the parts of all ranks. EngineError (kBug) when ranks disagree about a
// tensor, or hold an element twice or not at all.
dcp::Metadata merge(std::vector<RankFile> files);

// How a key nests: model.a.b -> model, a.b; optim.state.a.b.exp_avg -> optim, state, a.b, exp_avg.
std::vector<std::string> path_of_key(const std::string& key);

}  // namespace ptrain::checkpoint
