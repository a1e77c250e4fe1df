// Ranks that share rows have no kernel for GPUs yet: whoever gets here is told so. Plans are
// refused before (launcher/plan/rules/available.cc).
#include "engine/base/engine_error.h"
#include "engine/kernels/attention_before.h"

namespace ptrain::kernels {
namespace {

[[noreturn]] void refuse() {
  throw EngineError(ExitCode::kUsage,
                    "ranks that share rows in a ring run on processors only in this version",
                    "set parallel.cp.ring to 1, or train without GPUs");
}

}  // namespace

void attention_before(const AttentionShape&, const Before&, const Tensor&, const Tensor&, Arena&) {
  refuse();
}

void attention_before_backward(const AttentionShape&, const Before&, const AttentionGradient&,
                               const Tensor&, const Tensor&, Arena&) {
  refuse();
}

}  // namespace ptrain::kernels
