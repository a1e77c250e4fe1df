#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

struct Pipeline;

enum class Purpose { kTrain, kEvaluate };  // kEvaluate: forward only

struct CompileInput {
  const model::Architecture& architecture;  // as the rank holds it, or the whole
  const mesh::Layout& layout;
  std::string shape;
  Purpose purpose = Purpose::kTrain;
  const Pipeline* pipeline = nullptr;  // pipeline_of the layout, where it is made for several ranks
};

// Errors (kUsage): a degree or count out of its range, or an axis that the engine cannot run.
Status check_layout(const mesh::Layout& layout);

// Layout in, the program of one rank out: schedule, then the passes in the order of
// docs/architecture.md. Errors (kUsage): a layout that the engine cannot run.
Result<Program> compile(const CompileInput& input, int rank);

}  // namespace ptrain::program
