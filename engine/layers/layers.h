#pragma once

#include <memory>

#include "core/model/architecture.h"
#include "engine/kernels/rotary.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

std::unique_ptr<Layer> make_embedding(const model::Architecture& architecture);
// rotary: null where positions do not turn queries and keys.
std::unique_ptr<Layer> make_decoder_block(const model::Architecture& architecture,
                                          const model::LayerSpec& spec,
                                          std::shared_ptr<const kernels::RotaryTable> rotary);
std::unique_ptr<Layer> make_head(const model::Architecture& architecture);

}  // namespace ptrain::layers
