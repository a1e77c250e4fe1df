#include "core/model/optimizer.h"

#include "core/recipe/precision.h"

namespace ptrain::model {

namespace {

using recipe::OptimizerKind;

// Below this a tensor's state is not worth a byte a value: it is a norm or a bias.
constexpr std::int64_t kLeast8bitElements = 4096;

// Muon is for maps from one hidden state to another, not for tables of tokens.
bool is_hidden_matrix(const Architecture& architecture, const ParameterSpec& parameter) {
  const GroupSpec& group = architecture.groups[static_cast<std::size_t>(parameter.group)];
  const auto& layer = architecture.layers[static_cast<std::size_t>(group.layer)];
  return parameter.shape.size() == 2 && layer.kind == LayerKind::kBlock;
}

UpdateRule rule_of(const Architecture& architecture, const ParameterSpec& parameter,
                   const recipe::Optimizer& optimizer) {
  if (parameter.role == Role::kRouterBias) return UpdateRule::kBalance;
  switch (optimizer.kind) {
    case OptimizerKind::kAdamW:
      break;
    case OptimizerKind::kMuon:
      return is_hidden_matrix(architecture, parameter) ? UpdateRule::kMuon : UpdateRule::kAdamW;
    case OptimizerKind::kAdam8bit:
      return parameter.num_elements() < kLeast8bitElements ? UpdateRule::kAdamW
                                                           : UpdateRule::kAdam8bit;
    case OptimizerKind::kLion:
      return UpdateRule::kLion;
    case OptimizerKind::kSgd:
      return optimizer.momentum > 0 ? UpdateRule::kSgdMomentum : UpdateRule::kSgd;
  }
  return UpdateRule::kAdamW;
}

BlockKind block_of(UpdateRule rule) {
  if (rule == UpdateRule::kMuon) return BlockKind::kMatrix;
  return rule == UpdateRule::kAdam8bit ? BlockKind::kRun : BlockKind::kElement;
}

}  // namespace

void use_optimizer(Architecture& architecture, const recipe::Optimizer& optimizer) {
  for (ParameterSpec& parameter : architecture.parameters) {
    parameter.rule = rule_of(architecture, parameter, optimizer);
    parameter.block = block_of(parameter.rule);
  }
}

Result<Architecture> make_architecture(const recipe::Recipe& recipe) {
  const DType dtype = recipe::compute_dtype_of(recipe.precision);
  PTRAIN_TRY(Architecture architecture, make_architecture(recipe.model, dtype));
  use_optimizer(architecture, recipe.optimizer);
  return architecture;
}

}  // namespace ptrain::model
