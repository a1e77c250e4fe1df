#pragma once

#include <span>
#include <string>

#include "core/model/architecture.h"
#include "engine/checkpoint/item.h"
#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// Fills runs of the model's parameters from a folder of Hugging Face weights (model.safetensors, or
// shards with their index); an item's key is the parameter's name. Files may be symbolic links, as
// in the cache of Hugging Face. Collective over the world. Anything that does not fit: one
// EngineError (kUnusable), the same on all ranks, that lists it all.
void load_safetensors(const std::string& folder, const model::Architecture& architecture,
                      std::span<const TensorItem> items, comm::Communicator& world);

}  // namespace ptrain::checkpoint
