#include <nlohmann/json.hpp>
#include <vector>

#include "engine/kernels/cross_entropy.h"
#include "engine/optim/adamw.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

// Reads two arrays and writes a third, together larger than any cache of one core.
double memory_bytes_per_s(comm::Communicator& world) {
  constexpr std::size_t kFloats = std::size_t{4} << 20;
  std::vector<float> a(kFloats, 1), b(kFloats, 2), c(kFloats);
  const double seconds = best_seconds(world, [&] {
    for (std::size_t i = 0; i < kFloats; ++i) c[i] = a[i] + 0.5F * b[i];
  });
  return 3.0 * kFloats * sizeof(float) / seconds;
}

double adamw_parameters_per_s(comm::Communicator& world) {
  constexpr std::int64_t kParameters = std::int64_t{1} << 22;  // in no cache, as after a backward
  std::vector<float> values[4];
  Tensor tensors[4];
  for (std::size_t i = 0; i < 4; ++i) {
    values[i].assign(kParameters, 0.01F);
    tensors[i] = contiguous(values[i].data(), DType::kFloat32, 1, kParameters);
  }
  const double seconds = best_seconds(world, [&] {
    optim::adamw({}, {.learning_rate = 1e-6}, tensors[0], tensors[1], tensors[2], tensors[3]);
  });
  return static_cast<double>(kParameters) / seconds;
}

double cross_entropy_logits_per_s(comm::Communicator& world) {
  constexpr std::int64_t kRows = 256, kVocabulary = 1024;
  std::vector<float> logits(kRows * kVocabulary, 0.1F);
  const std::vector<std::int32_t> targets(kRows, 1);
  const Tensor view = contiguous(logits.data(), DType::kFloat32, kRows, kVocabulary);
  double sum = 0;
  const double seconds = best_seconds(
      world, [&] { sum += kernels::cross_entropy(view, targets, kernels::LogitsUse::kGradient); });
  return static_cast<double>(logits.size()) / seconds;
}

}  // namespace ptrain::probe
