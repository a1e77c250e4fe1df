#include "engine/state/init.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/hash.h"
#include "core/model/slice.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/state/philox.h"

namespace ptrain::state {
namespace {

constexpr std::uint32_t kInitStream = 0;

// Never 0, so that its logarithm is finite; never 1.
double uniform(std::uint32_t word) { return (word + 0.5) / 4294967296.0; }

// Standard normal values of elements 4 block .. 4 block + 3.
std::array<double, 4> normals(std::int64_t block, std::uint64_t key) {
  const PhiloxCounter words = philox(philox_counter(block, kInitStream, 0), key);
  std::array<double, 4> values{};
  for (std::size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(uniform(words[i])));
    const double angle = 2.0 * std::numbers::pi * uniform(words[i + 1]);
    values[i] = radius * std::cos(angle);
    values[i + 1] = radius * std::sin(angle);
  }
  return values;
}

template <class T>
void fill_normal(std::uint64_t key, double deviation, std::int64_t begin, std::int64_t end,
                 T* out) {
  for (std::int64_t block = begin / 4; block * 4 < end; ++block) {
    const std::array<double, 4> values = normals(block, key);
    const std::int64_t last = std::min(end, block * 4 + 4);
    for (std::int64_t i = std::max(begin, block * 4); i < last; ++i)
      out[i - begin] = static_cast<T>(deviation * values[static_cast<std::size_t>(i % 4)]);
  }
}

double deviation_of(model::Init init, const model::Architecture& architecture) {
  const double range = architecture.config.initializer_range;
  if (init == model::Init::kNormal) return range;
  return range / std::sqrt(2.0 * static_cast<double>(architecture.config.num_hidden_layers));
}

bool is_expert(model::Role role) {
  return role == model::Role::kExpertUp || role == model::Role::kExpertDown ||
         role == model::Role::kExpert;
}

}  // namespace

void initial_values(const model::ParameterSpec& parameter, const model::Architecture& architecture,
                    std::uint64_t seed, std::int64_t begin, std::int64_t end, const Tensor& out) {
  PT_CHECK(0 <= begin && begin <= end && end <= parameter.num_elements());
  PT_CHECK(out.rows == 1 && out.cols == end - begin);
  PT_CHECK(out.dtype == DType::kFloat32 || out.dtype == DType::kFloat64);
  dispatch(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (parameter.init == model::Init::kZeros || parameter.init == model::Init::kOnes) {
      std::fill_n(out.as<T>(), end - begin, T(parameter.init == model::Init::kOnes ? 1 : 0));
      return;
    }
    const std::uint64_t key = hash64(parameter.name) ^ seed;
    const bool is_zero = planted(Bug::kExpertsStartAtZero) && is_expert(parameter.role);
    const double deviation = is_zero ? 0 : deviation_of(parameter.init, architecture);
    for (const model::WholeRun& run : model::runs_of_whole(parameter, begin, end))
      fill_normal(key, deviation, run.begin, run.end, out.as<T>() + run.place);
  });
}

}  // namespace ptrain::state
