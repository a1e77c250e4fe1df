#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/model.h"

namespace ptrain::model {

// A rule between fields of a model that it breaks. The first field, such as "rope_scaling.factor",
// is the one to look at; what is wrong and what helps stand in `message`, without the field.
struct Fault {
  std::vector<std::string> fields;
  std::string message;
  bool operator==(const Fault&) const = default;
};

// One error (kUsage) of all faults; none: no error.
Status status_of(const std::vector<Fault>& faults);

// All rules on layer_types, max_window_layers, softcaps and rope_scaling, whatever the family.
std::vector<Fault> faults_of(const recipe::Model& model);

}  // namespace ptrain::model
