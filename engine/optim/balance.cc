#include "engine/optim/balance.h"

#include "engine/base/engine_error.h"

namespace ptrain::optim {

void balance(double rate, const Tensor& bias, const Tensor& gradient) {
  PT_CHECK(bias.rows == 1 && bias.cols == gradient.cols);
  dispatch(bias.dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < bias.cols; ++i) {
      const T excess = gradient.as<T>()[i];
      if (excess > 0) bias.as<T>()[i] -= static_cast<T>(rate);
      if (excess < 0) bias.as<T>()[i] += static_cast<T>(rate);
    }
  });
}

}  // namespace ptrain::optim
