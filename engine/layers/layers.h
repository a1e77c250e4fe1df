#pragma once

#include <memory>

#include "core/model/architecture.h"
#include "engine/kernels/rotary.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

std::unique_ptr<Layer> make_embedding(const model::Architecture& architecture);
std::unique_ptr<Layer> make_llama_block(const model::Architecture& architecture,
                                        std::shared_ptr<const kernels::RotaryTable> rotary);
std::unique_ptr<Layer> make_head(const model::Architecture& architecture);

}  // namespace ptrain::layers
