#pragma once

#include <memory>

#include "engine/comm/communicator.h"

namespace ptrain::comm {

// The communicator by which tensors travel between the ranks of `peers`, which it owns. Where
// kernels run on the processor, `peers` itself. Where they run on a GPU, NCCL, with `peers` for
// addresses and barriers: every verb is queued behind the kernels that were started before, and is
// done for those started later, so its Work is done at once; host code synchronises the device. Its
// sums are NCCL's own: the same bits from run to run, not those of other backends. It has no
// windows. Of host memory it takes all_reduce alone, which goes over `peers`. Collective over
// `peers`, each rank with its GPU open. Null stays null.
std::unique_ptr<Communicator> for_tensors(std::unique_ptr<Communicator> peers);

}  // namespace ptrain::comm
