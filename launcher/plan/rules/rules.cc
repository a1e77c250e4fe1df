#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

namespace {

constexpr Rule kRules[] = {
    {"tp", tensor_divides},
    {"tp", head_spreads},
    {"ulysses", context_divides},
    {"dp", is_available},
    {"dp", rows_divide},
    {"etp", experts_divide},
    {"etp", degrees_are_as_fixed},
    {"micro_batch", tokens_divide},
    {"schedule", stages_fit},
    {"schedule", schedule_fits},
    {"schedule", stage_recompute_fits},
    {"schedule", stage_dtype_fits},
    {"prefetch", is_as_fixed},
};

}  // namespace

std::string detail_of(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

std::span<const Rule> rules() { return kRules; }

}  // namespace ptrain::plan
