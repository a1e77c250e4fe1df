#include "core/schedule/placement.h"

#include <array>

namespace ptrain::schedule {

std::string_view name_of(Placement placement) {
  constexpr std::array<std::string_view, 4> kNames = {"loop", "zigzag", "contiguous", "mirrored"};
  return kNames[static_cast<std::size_t>(placement)];
}

}  // namespace ptrain::schedule
