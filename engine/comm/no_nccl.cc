// In place of nccl.cc in a build without CUDA.
#include "engine/base/engine_error.h"
#include "engine/comm/nccl.h"

namespace ptrain::comm {

std::unique_ptr<Communicator> make_nccl(std::unique_ptr<Communicator>, const NcclOptions&) {
  throw EngineError(ExitCode::kEnvironment, "this engine is built without NCCL",
                    "build with -DPTRAIN_CUDA=ON to train on GPUs, or use a cluster without them");
}

}  // namespace ptrain::comm
