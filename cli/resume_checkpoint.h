#pragma once

#include "cli/commands.h"

namespace ptrain::cli {

// `ptrain resume CHECKPOINT --recipe FILE`: a new run that goes on from a checkpoint of anyone.
Result<ExitCode> resume_checkpoint(const ResumeArguments& arguments);

}  // namespace ptrain::cli
