#include "core/program/keep.h"

#include <algorithm>
#include <array>

namespace ptrain::program {
namespace {

constexpr std::array<std::string_view, 4> kWords{"none", "input", "selected", "all"};

}  // namespace

std::string_view to_string(Keep keep) { return kWords[static_cast<std::size_t>(keep)]; }

std::optional<Keep> keep_named(std::string_view word) {
  const auto found = std::ranges::find(kWords, word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Keep>(found - kWords.begin());
}

Keep keep_of(recipe::Recompute recompute) {
  switch (recompute) {
    case recipe::Recompute::kNone:
      break;
    case recipe::Recompute::kSelective:
      return Keep::kSelected;
    case recipe::Recompute::kFull:
      return Keep::kInput;
  }
  return Keep::kAll;
}

bool keeps(Keep keep, const model::StashTensor& tensor) {
  switch (tensor.stash_class) {
    case model::StashClass::kInput:
      return keep >= Keep::kInput;
    case model::StashClass::kKept:
      return keep >= Keep::kSelected;
    case model::StashClass::kRemade:
      break;
  }
  return keep == Keep::kAll;
}

bool keeps_all(Keep keep, const model::LayerSpec& layer) {
  return std::ranges::all_of(layer.stash,
                             [keep](const auto& tensor) { return keeps(keep, tensor); });
}

}  // namespace ptrain::program
