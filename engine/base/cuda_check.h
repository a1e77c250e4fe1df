#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "engine/base/engine_error.h"

namespace ptrain::device {

// EngineError where a call of the CUDA runtime failed; also for what earlier kernels did, which the
// runtime tells at a later call.
inline void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw EngineError(ExitCode::kRankError,
                    "CUDA: " + std::string(what) + " failed: " + cudaGetErrorString(status),
                    "kernels run one after the other: CUDA_LAUNCH_BLOCKING=1 shows which failed");
}

}  // namespace ptrain::device
