// In place of nccl.cc where kernels run on the processor.
#include "engine/comm/nccl.h"

namespace ptrain::comm {

std::unique_ptr<Communicator> for_tensors(std::unique_ptr<Communicator> peers) { return peers; }

}  // namespace ptrain::comm
