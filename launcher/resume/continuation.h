#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/plan.h"
#include "launcher/resume/differences.h"
#include "launcher/resume/stored_checkpoint.h"

namespace ptrain::resume {

// What a new run takes over from a checkpoint.
struct Continuation {
  run::Origin origin;
  std::vector<Difference> differences;  // between the checkpoint's recipe, if it has one, and ours
  std::vector<std::string> fresh;       // what the checkpoint lacks, so that it starts anew
  std::vector<std::string> notes;
};

// Errors (kUnusable): the checkpoint does not hold the recipe's model; all that is wrong is listed.
Result<Continuation> continue_from(const StoredCheckpoint& checkpoint,
                                   const recipe::Recipe& recipe);

// Whether the run may start so. Errors (kUsage) say what may not differ, what needs
// --allow-changes, or that no step is left to train.
Status permit(const Continuation& continuation, const recipe::Recipe& recipe, bool allow_changes);

}  // namespace ptrain::resume
