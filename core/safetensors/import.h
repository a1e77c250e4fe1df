#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/architecture.h"
#include "core/safetensors/contents.h"

namespace ptrain::safetensors {

// Where a folder keeps a model's parameters.
struct Import {
  std::vector<std::string> names;  // of tensors, in the order of the architecture's parameters
  // A tied embedding that is there twice: the head's tensor, which must hold the same values.
  std::string tied_copy;
  int tied = -1;  // index of the parameter that embedding and head share; -1: none
};

// Finds a model's parameters in `contents`, by their Hugging Face names with or without the first
// part (`model.`, `transformer.`). A head that is tied may be there, be left out, or stand for the
// embedding. Buffers that old versions of transformers stored are passed over. The error
// (kUnusable) lists all at once: faults of files, tensors missing or too many, shapes, dtypes.
Result<Import> find_parameters(const Contents& contents, const model::Architecture& architecture);

}  // namespace ptrain::safetensors
