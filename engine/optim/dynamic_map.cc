#include "engine/optim/dynamic_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ptrain::optim {

namespace {

constexpr int kDecades = 7;

}  // namespace

DynamicMap::DynamicMap(bool has_sign) {
  std::vector<double> values{0.0, 1.0};
  for (int decade = 0; decade < kDecades; ++decade) {
    const double scale = std::pow(10.0, decade - kDecades + 1);
    const int count = (has_sign ? 1 : 2) << decade;  // middles of as many equal parts of [0.1, 1]
    for (int i = 0; i < count; ++i) {
      const double middle = 0.1 + 0.9 * (i + 0.5) / count;
      values.push_back(scale * middle);
      if (has_sign) values.push_back(-scale * middle);
    }
  }
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(values[i]);
  thresholds_[0] = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 1; i < values_.size(); ++i)
    thresholds_[i] = values_[i - 1] + (values_[i] - values_[i - 1]) * 0.5F;
}

const DynamicMap& DynamicMap::with_sign() {
  static const DynamicMap map(true);
  return map;
}

const DynamicMap& DynamicMap::without_sign() {
  static const DynamicMap map(false);
  return map;
}

// Eight halvings without a branch.
std::uint8_t DynamicMap::nearest(float value) const {
  std::size_t code = 0;
  for (std::size_t half = 128; half > 0; half /= 2)
    code += thresholds_[code + half] <= value ? half : 0;
  return static_cast<std::uint8_t>(code);
}

}  // namespace ptrain::optim
