#pragma once

#include <cstdint>

#include "core/model/architecture.h"
#include "engine/base/tensor.h"

namespace ptrain::state {

// Fills `out` ([1, end - begin]) with elements [begin, end) of the initial values of the parameter,
// which may be a part: each element's value is that of its place in the whole. They depend on name
// and seed only: Philox4x32-10, key xxh3(name) ^ seed, counter (element / 4, stream,
// step); Box-Muller in double, then cast.
void initial_values(const model::ParameterSpec& parameter, const model::Architecture& architecture,
                    std::uint64_t seed, std::int64_t begin, std::int64_t end, const Tensor& out);

}  // namespace ptrain::state
