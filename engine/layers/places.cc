#include "engine/layers/places.h"

#include "engine/base/engine_error.h"

namespace ptrain::layers {

const model::ParameterSpec& Places::spec_of(std::size_t place) const {
  return architecture_.parameters[static_cast<std::size_t>(spec_.parameters[place])];
}

bool Places::has(model::Role role) const {
  for (std::size_t place = 0; place < spec_.parameters.size(); ++place)
    if (spec_of(place).role == role) return true;
  return false;
}

std::size_t Places::parameter(model::Role role) const {
  std::size_t place = 0;
  while (place < spec_.parameters.size() && spec_of(place).role != role) ++place;
  PT_CHECK(place < spec_.parameters.size());
  return place;
}

bool Places::is_transposed(model::Role role) const { return spec_of(parameter(role)).transposed; }

std::size_t Places::stash(std::string_view name) const {
  std::size_t place = 0;
  while (place < spec_.stash.size() && spec_.stash[place].name != name) ++place;
  PT_CHECK(place < spec_.stash.size());
  return place;
}

}  // namespace ptrain::layers
