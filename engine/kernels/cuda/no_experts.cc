// Experts and latent attention have no kernels for GPUs yet: whoever gets here is told so. Runs are
// refused before (cli/engine_module.cc).
#include "engine/base/engine_error.h"
#include "engine/kernels/expert_rows.h"
#include "engine/kernels/rotary.h"
#include "engine/kernels/router.h"

namespace ptrain::kernels {
namespace {

[[noreturn]] void refuse() {
  throw EngineError(ExitCode::kUsage,
                    "experts and latent attention run on processors only in this version",
                    "train the model without GPUs, or choose another model.family");
}

}  // namespace

void rotate_neighbours(const RotaryAngles&, std::span<const std::int32_t>, const Tensor&, Turn) {
  refuse();
}

void choose_experts(const RouterShape&, const Tensor&, const Tensor&, const Tensor&) { refuse(); }
void weigh_experts(const RouterShape&, const Tensor&, const Tensor&, const Tensor&) { refuse(); }
void router_backward(const RouterShape&, const Tensor&, const Tensor&, const RouterLoss&,
                     const Tensor&) {
  refuse();
}
void sum_router(const RouterShape&, const Tensor&, std::span<const std::int32_t>, RouterSums&) {
  refuse();
}

Tensor ExpertRuns::rows_of(const Tensor&, std::int64_t) const { refuse(); }
ExpertRows sort_by_expert(const Tensor&, std::int64_t) { refuse(); }
void take_rows(const ExpertRows&, const Tensor&, const Tensor&) { refuse(); }
void add_slots(const ExpertRows&, const Tensor&, const Tensor&, const Tensor&) { refuse(); }
void take_weights(const ExpertRows&, const Tensor&, const Tensor&) { refuse(); }
void add_weights(const ExpertRows&, const Tensor&, const Tensor&) { refuse(); }
void dot_rows(const Tensor&, const Tensor&, const Tensor&) { refuse(); }
void scale_rows(const Tensor&, const Tensor&) { refuse(); }

}  // namespace ptrain::kernels
