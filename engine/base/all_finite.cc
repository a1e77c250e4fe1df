#include "engine/base/all_finite.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"

namespace ptrain {

bool all_finite(const Tensor& row) {
  PT_CHECK(row.rows == 1);
  return dispatch(row.dtype, [&](auto zero) {
    const auto* values = row.as<decltype(zero)>();
    return std::all_of(values, values + row.cols, [](auto value) { return std::isfinite(value); });
  });
}

}  // namespace ptrain
