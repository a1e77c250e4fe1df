#pragma once

#include <cstdint>

namespace ptrain::control {

// Memory of this process that lies in RAM now; 0 where /proc cannot be read.
std::int64_t resident_bytes();

}  // namespace ptrain::control
