#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/dcp/metadata.h"
#include "core/model/architecture.h"

namespace ptrain::dcp {

// Where a checkpoint keeps one parameter and its optimizer state.
struct ParameterSource {
  std::string key;
  std::string state;           // + "." and a name of state_of, or "step"; empty: it is not there
  std::int64_t head_rows = 0;  // > 0: rows of each head interleaved, see rotary_head_rows
  bool operator==(const ParameterSource&) const = default;
};

struct Import {
  std::string naming;                       // for people: "torchtitan names without a prefix"
  std::vector<ParameterSource> parameters;  // in the architecture's order
  bool has_moments = false;                 // of all parameters that keep state, else of none
  std::vector<std::string> unread;          // tensors that no parameter needs
};

// Finds a model's parameters in a checkpoint of anyone: under the prefix "model.", "module." or
// none, by their Hugging Face or torchtitan names, with optimizer state under "optim." or
// "optimizer.". The naming under which all are found is taken. Errors (kUnusable) list what is
// missing, has another shape, or is there in part; two namings that fit are refused.
Result<Import> find_parameters(const Metadata& metadata, const model::Architecture& architecture);

// The key of the step that training had reached, a value or a tensor of one element: the trainer's
// own count, else that of the optimizer.
std::optional<std::string> step_key(const Metadata& metadata, const Import& import);

}  // namespace ptrain::dcp
