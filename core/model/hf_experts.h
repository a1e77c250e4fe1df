#pragma once

#include <string>
#include <vector>

#include "core/model/family.h"
#include "core/model/hf_reader.h"

namespace ptrain::model {

// The fields on experts and latent attention that `family` uses, and those of its config.json that
// only say what the family does anyway: refused where they say another thing.
void read_experts(HfReader& reader, const Family& family, recipe::Model& model,
                  std::vector<std::string>& warnings);

}  // namespace ptrain::model
