#include "core/recipe/optimizer.h"

#include <algorithm>
#include <array>

namespace ptrain::recipe {

namespace {

struct Use {
  std::string_view field;
  std::array<bool, 5> by;  // in the order of OptimizerKind
};

constexpr std::array<Use, 7> kUses{{
    //              adamw  muon   8 bit  lion   sgd
    {"betas.0", {true, true, true, true, false}},
    {"betas.1", {true, true, true, true, false}},
    {"eps", {true, true, true, false, false}},
    {"momentum", {false, true, false, false, true}},
    {"nesterov", {false, true, false, false, true}},
    {"muon_scale", {false, true, false, false, false}},
    {"adamw_ratio", {false, true, false, false, false}},
}};

}  // namespace

bool uses(OptimizerKind kind, std::string_view field) {
  const auto* use = std::ranges::find(kUses, field, &Use::field);
  return use == kUses.end() || use->by[static_cast<std::size_t>(kind)];
}

}  // namespace ptrain::recipe
