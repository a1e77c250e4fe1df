#pragma once

#include <cstddef>
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

// The program as if the action at this place had never been: nobody waits for it.
inline void drop(program::Program& program, std::size_t at) {
  program.actions.erase(program.actions.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    program::Action& action = program.actions[i];
    action.id = static_cast<int>(i);
    std::erase(action.after, static_cast<int>(at));
    for (int& id : action.after)
      if (id > static_cast<int>(at)) --id;
  }
}

}  // namespace ptrain::support
