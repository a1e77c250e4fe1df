#pragma once

#include "cli/commands.h"
#include "core/run/plan.h"
#include "launcher/recipe/reader.h"

namespace ptrain::cli {

// `ptrain run RECIPE --parity`: each shape's layout beside one rank, printed; nothing is trained.
Result<ExitCode> run_parity(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                            const run::Plan& plan);

}  // namespace ptrain::cli
