#pragma once

#include <vector>

#include "core/program/compile.h"

namespace ptrain::support {

// The programs of all ranks, by rank, of a layout that can run.
inline std::vector<program::Program> compile_world(const program::CompileInput& input) {
  std::vector<program::Program> world;
  for (int rank = 0; rank < input.layout.num_ranks(); ++rank)
    world.push_back(*program::compile(input, rank));
  return world;
}

}  // namespace ptrain::support
