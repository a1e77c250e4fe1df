#pragma once

#include <optional>
#include <string_view>

#include "core/model/architecture.h"

namespace ptrain::program {

// Which tensors of a layer's stash are there: after a FORWARD (its attribute `keep`), and when a
// RECOMPUTE begins, which makes the others again (its attribute `from`). In the order of how many.
enum class Keep { kNone, kInput, kSelected, kAll };

std::string_view to_string(Keep keep);  // none, input, selected, all
std::optional<Keep> keep_named(std::string_view word);
// What blocks keep under this recomputation.
Keep keep_of(recipe::Recompute recompute);

// kInput: the layer's input; kSelected: all that is not of the class kRemade.
bool keeps(Keep keep, const model::StashTensor& tensor);
// Whether that is all of the layer's stash.
bool keeps_all(Keep keep, const model::LayerSpec& layer);

}  // namespace ptrain::program
