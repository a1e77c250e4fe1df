#include "launcher/plan/rules/rules.h"

#include "core/mesh/part.h"
#include "launcher/plan/cuts.h"

namespace ptrain::plan {

namespace {

constexpr Rule kRules[] = {
    {"pp", every_rank_has_layers},
    {"tp", tensor_divides},
    {"tp", vocabulary_spreads},
    {"ulysses", context_divides},
    {"dp", is_available},
    {"dp", rows_divide},
    {"etp", experts_divide},
    {"etp", degrees_are_as_fixed},
    {"zero", zero_is_as_fixed},
    {"micro_batch", micro_batch_is_as_fixed},
    {"micro_batch", tokens_divide},
    {"schedule", stages_fit},
    {"schedule", schedule_fits},
    {"schedule", stage_recompute_fits},
    {"schedule", stage_dtype_fits},
    {"schedule", pipeline_is_as_fixed},
    {"recompute", recompute_is_as_fixed},
    {"prefetch", is_as_fixed},
};

}  // namespace

Status can_be_cut(const mesh::Layout& degrees, const Space& space) {
  if (space.architecture == nullptr) return {};
  if (space.cuts == nullptr) {
    PTRAIN_CHECK(mesh::part_of(*space.architecture, degrees, 0));
  } else {
    PTRAIN_CHECK(space.cuts->work_of(degrees));
  }
  return {};
}

std::span<const Rule> rules() { return kRules; }

}  // namespace ptrain::plan
