#pragma once

#include <string>

#include "core/base/result.h"
#include "core/run/plan.h"
#include "core/run/request.h"

namespace ptrain::cli {

// The absolute path of the running binary.
Result<std::string> own_path();

// What an engine's kernels run on.
enum class EngineKind { kProcessor, kGpu };
// The kind that a plan wants: on GPUs where it names some.
EngineKind engine_of(const run::Plan& plan);

// The engine module beside the binary; an error (kEnvironment) with a remedy where there is none.
Result<std::string> find_engine(EngineKind kind = EngineKind::kProcessor);

// The one that a plan runs on. Error (kUsage): it has no kernels for the plan's model.
Result<std::string> find_engine_of(const run::Plan& plan);

// Opens it, has it do what is asked, in this process, and returns its exit code; it has said what
// went wrong. It stays open: what torch started cannot be unloaded.
Result<int> run_engine(const run::Request& request, EngineKind kind = EngineKind::kProcessor);

}  // namespace ptrain::cli
