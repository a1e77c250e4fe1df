#include "core/model/optimizer_state.h"

namespace ptrain::model {

std::vector<std::int64_t> StateTensor::shape(const ParameterSpec& parameter) const {
  if (block == 1) return parameter.shape;
  return {num_values(parameter.num_elements())};
}

std::vector<StateTensor> state_of(const ParameterSpec& parameter, DType dtype) {
  switch (parameter.rule) {
    case UpdateRule::kAdamW:
      return {{"exp_avg", dtype}, {"exp_avg_sq", dtype}};
    case UpdateRule::kAdam8bit:
      return {{"exp_avg", DType::kUInt8},
              {"exp_avg_absmax", DType::kFloat32, kRunElements},
              {"exp_avg_sq", DType::kUInt8},
              {"exp_avg_sq_absmax", DType::kFloat32, kRunElements}};
    case UpdateRule::kMuon:
    case UpdateRule::kSgdMomentum:
      return {{"momentum_buffer", dtype}};
    case UpdateRule::kLion:
      return {{"exp_avg", dtype}};
    case UpdateRule::kSgd:
    case UpdateRule::kBalance:
      break;
  }
  return {};
}

bool counts_steps(UpdateRule rule) {
  return rule == UpdateRule::kAdamW || rule == UpdateRule::kAdam8bit;
}

}  // namespace ptrain::model
