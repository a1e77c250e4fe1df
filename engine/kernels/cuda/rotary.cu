#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/launch.h"
#include "engine/kernels/rotary.h"

namespace ptrain::kernels {
namespace {

// One pair of one head.
template <class T>
struct Rotate {
  View<T> x, angles;
  const std::int32_t* positions;
  std::int64_t half;
  T sign;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t pair) const {
    const std::int64_t j = pair % half, first = pair / half * 2 * half + j;
    const T a = x(t, first), b = x(t, first + half);
    const T cosine = angles(positions[t], j), sine = angles(positions[t], half + j) * sign;
    x(t, first) = a * cosine - b * sine;
    x(t, first + half) = b * cosine + a * sine;
  }
};

}  // namespace

void rotate(const RotaryAngles& angles, std::span<const std::int32_t> positions, const Tensor& x,
            Turn turn) {
  const Tensor& table = angles.tensor;
  PT_CHECK(static_cast<std::int64_t>(positions.size()) == x.rows && x.cols % table.cols == 0);
  PT_CHECK(std::ranges::all_of(
      positions, [&](std::int32_t position) { return position >= 0 && position < table.rows; }));
  const Uploaded<std::int32_t> uploaded(positions);
  dispatch(x.dtype, [&]<class T>(T) {
    each_element(x.rows, x.cols / 2,
                 Rotate<T>{View<T>(x), View<T>(table), uploaded.data(), table.cols / 2,
                           turn == Turn::kForward ? T{1} : T{-1}});
  });
}

}  // namespace ptrain::kernels
