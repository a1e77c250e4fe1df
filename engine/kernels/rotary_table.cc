#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "engine/base/device.h"
#include "engine/kernels/rotary.h"

namespace ptrain::kernels {
namespace {

template <class T>
void fill_angles(const Tensor& out, const std::vector<double>& frequencies, double factor) {
  const auto half = std::ssize(frequencies);
  for (std::int64_t j = 0; j < half; ++j) {
    for (std::int64_t position = 0; position < out.rows; ++position) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<std::size_t>(j)];
      T* row = out.as<T>() + position * out.stride;
      row[j] = static_cast<T>(factor * std::cos(angle));
      row[half + j] = static_cast<T>(factor * std::sin(angle));
    }
  }
}

}  // namespace

RotaryAngles::RotaryAngles(DType dtype, std::int64_t num_positions, std::int64_t head_dim)
    : tensor(contiguous(device::allocate(num_positions * head_dim * size_of(dtype)), dtype,
                        num_positions, head_dim)) {}

RotaryAngles::~RotaryAngles() { device::release(tensor.data); }

RotaryTable::RotaryTable(std::vector<double> frequencies, double factor, DType dtype)
    : frequencies_(std::move(frequencies)), factor_(factor), dtype_(dtype) {}

std::shared_ptr<const RotaryAngles> RotaryTable::angles(std::int64_t num_positions) const {
  const std::lock_guard lock(mutex_);
  if (angles_ == nullptr || angles_->tensor.rows < num_positions) {
    const auto rows = static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(num_positions, 64))));
    const std::int64_t head_dim = 2 * std::ssize(frequencies_);
    const auto grown = std::make_shared<RotaryAngles>(dtype_, rows, head_dim);
    dispatch(dtype_, [&]<class T>(T) { fill_angles<T>(grown->tensor, frequencies_, factor_); });
    angles_ = grown;
  }
  return angles_;
}

}  // namespace ptrain::kernels
