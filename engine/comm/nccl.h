#pragma once

#include <memory>

#include "engine/comm/communicator.h"

namespace ptrain::comm {

struct NcclOptions {
  int device = 0;
  // The cudaStream_t on which every verb is queued, so behind the kernels that made its buffers.
  void* stream = nullptr;
  double time_limit_s = 1800;
};

// A communicator for buffers in GPU memory, of the same ranks as `peers`, which it owns and uses
// for addresses and barriers. Sums are NCCL's own: the same bits from run to run, not those of
// other backends. It has no windows. A build without CUDA throws EngineError.
std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator> peers,
                                        const NcclOptions& options);

}  // namespace ptrain::comm
