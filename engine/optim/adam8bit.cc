#include "engine/optim/adam8bit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/divide.h"
#include "core/model/architecture.h"
#include "engine/base/engine_error.h"
#include "engine/optim/dynamic_map.h"

namespace ptrain::optim {
namespace {

constexpr std::int64_t kRun = model::kRunElements;
constexpr float kLeastMagnitude = 1e-12F;  // keeps the division of a run of zeros a number

std::int64_t num_runs(std::int64_t size) { return divide_up(size, kRun); }

template <class T>
void widen(const DynamicMap& map, const std::uint8_t* codes, float absmax, T* values,
           std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) values[i] = static_cast<T>(map.value(codes[i]) * absmax);
}

template <class T>
float narrow(const DynamicMap& map, const T* values, std::uint8_t* codes, std::int64_t size) {
  float absmax = kLeastMagnitude;
  for (std::int64_t i = 0; i < size; ++i)
    absmax = std::max(absmax, std::abs(static_cast<float>(values[i])));
  for (std::int64_t i = 0; i < size; ++i)
    codes[i] = map.nearest(static_cast<float>(values[i]) / absmax);
  return absmax;
}

template <class T>
void update_run(const AdamWOptions& options, const Step& step, const Tensor& parameter,
                const Tensor& gradient, std::array<T, kRun>& first, std::array<T, kRun>& second) {
  adamw(options, step, parameter, gradient,
        contiguous(first.data(), parameter.dtype, 1, parameter.cols),
        contiguous(second.data(), parameter.dtype, 1, parameter.cols));
}

}  // namespace

void adam8bit(const AdamWOptions& options, const Step& step, const Tensor& parameter,
              const Tensor& gradient, const EightBitMean& exp_avg, const EightBitMean& exp_avg_sq) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols);
  PT_CHECK(exp_avg.codes.cols == parameter.cols && exp_avg_sq.codes.cols == parameter.cols);
  PT_CHECK(exp_avg.absmax.cols == num_runs(parameter.cols));
  PT_CHECK(exp_avg_sq.absmax.cols == num_runs(parameter.cols));
  const DynamicMap& with_sign = DynamicMap::with_sign();
  const DynamicMap& without_sign = DynamicMap::without_sign();
  dispatch(parameter.dtype, [&]<class T>(T) {
    std::array<T, kRun> first, second;
    for (std::int64_t run = 0; run < num_runs(parameter.cols); ++run) {
      const std::int64_t begin = run * kRun, size = std::min(kRun, parameter.cols - begin);
      std::uint8_t* first_codes = exp_avg.codes.as<std::uint8_t>() + begin;
      std::uint8_t* second_codes = exp_avg_sq.codes.as<std::uint8_t>() + begin;
      float& first_absmax = exp_avg.absmax.as<float>()[run];
      float& second_absmax = exp_avg_sq.absmax.as<float>()[run];
      widen(with_sign, first_codes, first_absmax, first.data(), size);
      widen(without_sign, second_codes, second_absmax, second.data(), size);
      update_run(options, step, parameter.columns(begin, size), gradient.columns(begin, size),
                 first, second);
      first_absmax = narrow(with_sign, first.data(), first_codes, size);
      second_absmax = narrow(without_sign, second.data(), second_codes, size);
    }
  });
}

}  // namespace ptrain::optim
