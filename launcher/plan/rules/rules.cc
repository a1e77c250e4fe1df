#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

namespace {

constexpr Rule kRules[] = {
    {"dp", is_available},
    {"dp", rows_divide},
    {"prefetch", is_as_fixed},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace ptrain::plan
