#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/cuda/launch.h"

namespace ptrain::kernels {
namespace {

template <class From, class To>
struct Convert {
  View<From> from;
  View<To> to;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const { to(t, i) = To(from(t, i)); }
};

template <class From, class To>
void convert_as(const Tensor& from, const Tensor& to) {
  each_element(from.rows, from.cols, Convert<From, To>{View<From>(from), View<To>(to)});
}

}  // namespace

void convert(const Tensor& from, const Tensor& to) {
  PT_CHECK(from.rows == to.rows && from.cols == to.cols);
  if (from.dtype == DType::kFloat32 && to.dtype == DType::kBFloat16)
    return convert_as<float, BFloat16>(from, to);
  if (from.dtype == DType::kBFloat16 && to.dtype == DType::kFloat32)
    return convert_as<BFloat16, float>(from, to);
  PT_CHECK(from.dtype == to.dtype);
  if (from.dtype == DType::kBFloat16) return convert_as<BFloat16, BFloat16>(from, to);
  dispatch(from.dtype, [&]<class T>(T) { convert_as<T, T>(from, to); });
}

}  // namespace ptrain::kernels
