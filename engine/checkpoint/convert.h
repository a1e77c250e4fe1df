#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/dtype.h"

namespace ptrain::checkpoint {

// Whether elements stored as `stored` (PyTorch's name) may be loaded as `wanted`: the same type,
// between float32 and float64, and from the 16-bit floats to these.
bool convertible(const std::string& stored, DType wanted);

// `from` holds whole elements of `stored`; their converted values go to `to`.
void convert(std::span<const std::byte> from, const std::string& stored, std::byte* to,
             DType wanted);

}  // namespace ptrain::checkpoint
