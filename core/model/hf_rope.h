#pragma once

#include <string>
#include <vector>

#include "core/model/hf_reader.h"
#include "core/recipe/model.h"

namespace ptrain::model {

// rope_theta, rope_scaling and rope_local_base_freq as transformers 4 writes them, or
// rope_parameters of transformers 5, flat or by layer type. has_local: layers with a window have a
// table of their own. Reads max_position_embeddings of the model, where a scaling falls back on it.
void read_rope(HfReader& reader, bool has_local, recipe::Model& model,
               std::vector<std::string>& reasons, std::vector<std::string>& warnings);

}  // namespace ptrain::model
