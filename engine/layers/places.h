#pragma once

#include <cstddef>
#include <string_view>

#include "core/model/architecture.h"

namespace ptrain::layers {

// Where a layer's code finds what it works with: the places of parameters in
// LayerSpec::parameters by their role, of stash tensors in LayerSpec::stash by their name.
class Places {
 public:
  Places(const model::Architecture& architecture, const model::LayerSpec& spec)
      : architecture_(architecture), spec_(spec) {}

  bool has(model::Role role) const;
  std::size_t parameter(model::Role role) const;
  bool is_transposed(model::Role role) const;
  std::size_t stash(std::string_view name) const;

 private:
  const model::ParameterSpec& spec_of(std::size_t place) const;
  const model::Architecture& architecture_;
  const model::LayerSpec& spec_;
};

}  // namespace ptrain::layers
