#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/comm/communicator.h"

namespace ptrain::comm {

// output[i] = inputs[0][i] op inputs[1][i] op ..., from the left, in `dtype` (float32, float64,
// int32, int64). `output` may be one of the inputs. A NaN wins every maximum.
void reduce_in_order(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::int64_t count, std::byte* output);

}  // namespace ptrain::comm
