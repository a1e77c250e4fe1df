#include "core/base/divide.h"
#include "core/model/architecture.h"
#include "engine/base/engine_error.h"
#include "engine/optim/adam8bit.h"
#include "engine/optim/cuda/adamw_update.h"
#include "engine/optim/dynamic_map.h"

namespace ptrain::optim {
namespace {

constexpr std::int64_t kRun = model::kRunElements;
constexpr float kLeastMagnitude = 1e-12F;  // keeps the division of a run of zeros a number

// A DynamicMap as kernels see it.
struct Map {
  const float *values, *thresholds;
  // The code of the nearest value, by eight halvings.
  PT_DEVICE std::uint8_t nearest(float value) const {
    int code = 0;
    for (int half = 128; half > 0; half /= 2)
      if (thresholds[code + half] <= value) code += half;
    return static_cast<std::uint8_t>(code);
  }
};

struct UploadedMap {
  explicit UploadedMap(const DynamicMap& map)
      : values(map.values()), thresholds(map.thresholds()) {}
  Map map() const { return {values.data(), thresholds.data()}; }
  kernels::Uploaded<float> values, thresholds;
};

struct Mean {
  explicit Mean(const EightBitMean& mean, const Map& its_map)
      : map(its_map), codes(mean.codes.as<std::uint8_t>()), absmax(mean.absmax.as<float>()) {}
  Map map;
  std::uint8_t* codes;
  float* absmax;
  PT_DEVICE float value(std::int64_t i) const { return map.values[codes[i]] * absmax[i / kRun]; }
};

// One run.
template <class T>
struct Adam8bit {
  AdamWUpdate<T> update;
  T* parameter;
  const T* gradient;
  Mean first, second;
  std::int64_t size;

  PT_DEVICE void operator()(const kernels::Block& block) const {
    const std::int64_t begin = block.index() * kRun;
    const std::int64_t count = size - begin < kRun ? size - begin : kRun;
    T* means = block.shared<T>();
    T* squares = means + kRun;
    block.each(count, [&](std::int64_t i) {
      means[i] = static_cast<T>(first.value(begin + i));
      squares[i] = static_cast<T>(second.value(begin + i));
      update(parameter[begin + i], gradient[begin + i], means[i], squares[i]);
    });
    narrow(block, first, means, count);
    narrow(block, second, squares, count);
  }

 private:
  PT_DEVICE static void narrow(const kernels::Block& block, const Mean& mean, const T* values,
                               std::int64_t count) {
    const auto magnitude = [&](std::int64_t i) { return std::abs(static_cast<float>(values[i])); };
    const float most = kernels::largest_of<float>(block, count, magnitude);
    const float absmax = most > kLeastMagnitude ? most : kLeastMagnitude;
    const std::int64_t run = block.index();
    block.each(count, [&](std::int64_t i) {
      mean.codes[run * kRun + i] = mean.map.nearest(static_cast<float>(values[i]) / absmax);
    });
    block.each(1, [&](std::int64_t) { mean.absmax[run] = absmax; });
  }
};

}  // namespace

void adam8bit(const AdamWOptions& options, const Step& step, const Tensor& parameter,
              const Tensor& gradient, const EightBitMean& exp_avg, const EightBitMean& exp_avg_sq) {
  const std::int64_t runs = divide_up(parameter.cols, kRun);
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols);
  PT_CHECK(exp_avg.codes.cols == parameter.cols && exp_avg_sq.codes.cols == parameter.cols);
  PT_CHECK(exp_avg.absmax.cols == runs && exp_avg_sq.absmax.cols == runs);
  const UploadedMap with_sign(DynamicMap::with_sign()), without_sign(DynamicMap::without_sign());
  dispatch(parameter.dtype, [&]<class T>(T) {
    kernels::launch(runs, 2 * kRun * static_cast<std::int64_t>(sizeof(T)),
                    Adam8bit<T>{AdamWUpdate<T>(options, step), parameter.as<T>(), gradient.as<T>(),
                                Mean(exp_avg, with_sign.map()),
                                Mean(exp_avg_sq, without_sign.map()), parameter.cols});
  });
}

}  // namespace ptrain::optim
