#include "engine/base/engine_error.h"
#include "engine/optim/adamw.h"
#include "engine/optim/cuda/adamw_update.h"

namespace ptrain::optim {
namespace {

template <class T>
struct AdamW {
  AdamWUpdate<T> update;
  T* parameter;
  const T* gradient;
  T *exp_avg, *exp_avg_sq;
  PT_DEVICE void operator()(std::int64_t, std::int64_t i) const {
    update(parameter[i], gradient[i], exp_avg[i], exp_avg_sq[i]);
  }
};

}  // namespace

void adamw(const AdamWOptions& options, const Step& step, const Tensor& parameter,
           const Tensor& gradient, const Tensor& exp_avg, const Tensor& exp_avg_sq) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols &&
           exp_avg.cols == parameter.cols && exp_avg_sq.cols == parameter.cols);
  dispatch(parameter.dtype, [&]<class T>(T) {
    kernels::each_element(1, parameter.cols,
                          AdamW<T>{AdamWUpdate<T>(options, step), parameter.as<T>(),
                                   gradient.as<T>(), exp_avg.as<T>(), exp_avg_sq.as<T>()});
  });
}

}  // namespace ptrain::optim
