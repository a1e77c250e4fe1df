#include <fmt/format.h>

#include "core/model/layer_builder.h"

namespace ptrain::model {
namespace {

constexpr auto kRemade = StashClass::kRemade;

// The norm and what it reads, which the product of attention is added into where no norm follows.
// `use`: of its output.
void add_norm(LayerBuilder& builder, const std::string& prefix, ForWeights use) {
  builder.norm(Role::kMlpNorm, Role::kMlpNormBias, prefix + builder.names().mlp_norm);
  builder.stash_of_stream("x2", builder.hidden(),
                          builder.decoder().norms_after ? kRemade : StashClass::kKept);
  builder.multiplied_of_stream("norm2", builder.hidden(), kRemade).for_weights = use;
  builder.stash_of_stream("norm2_scale", builder.norm_scales(), kRemade);
}

void add_gated(LayerBuilder& builder, const std::string& prefix, std::int64_t inner) {
  builder.matrix(Role::kSharedUp, prefix + "gate_proj", inner, builder.hidden());
  builder.matrix(Role::kGated, prefix + "up_proj", inner, builder.hidden());
  builder.matrix(Role::kSharedDown, prefix + "down_proj", builder.hidden(), inner,
                 Init::kResidualNormal);
  builder.multiplied("shared_gate_up", 2 * inner);
  builder.multiplied("shared_product", inner, kRemade);
  builder.matmul("shared_gate_up", builder.hidden(), 2 * inner);
  builder.matmul("shared_down", inner, builder.hidden());
}

// Gate and up of every expert, then down of every expert.
void add_matrices(LayerBuilder& builder, const std::string& prefix, std::int64_t inner) {
  const ParameterNames& names = builder.names();
  const std::int64_t count = builder.decoder().moe.num_experts;
  const auto name = [&](std::int64_t expert, const std::string& matrix) {
    return prefix + fmt::format(fmt::runtime(names.expert), expert) + matrix;
  };
  for (std::int64_t e = 0; e < count; ++e) {
    builder.matrix(e == 0 ? Role::kExpertUp : Role::kExpert, name(e, names.expert_gate), inner,
                   builder.hidden());
    builder.matrix(Role::kExpert, name(e, names.expert_up), inner, builder.hidden());
  }
  for (std::int64_t e = 0; e < count; ++e)
    builder.matrix(e == 0 ? Role::kExpertDown : Role::kExpert, name(e, names.expert_down),
                   builder.hidden(), inner, Init::kResidualNormal);
}

}  // namespace

void add_mlp(LayerBuilder& builder, const std::string& prefix) {
  const Decoder& decoder = builder.decoder();
  const ParameterNames& names = builder.names();
  const std::int64_t inner = builder.config().intermediate_size;
  const std::int64_t up = decoder.gated ? 2 * inner : inner;
  add_norm(builder, prefix, ForWeights::kGathered);
  std::vector<std::string> run = {names.up};
  if (decoder.gated) run = {names.gate, names.up};
  for (std::size_t i = 0; i < run.size(); ++i)
    builder.matrix(i == 0 ? Role::kUp : Role::kGated, prefix + run[i], inner, builder.hidden());
  for (std::size_t i = 0; i < run.size() && decoder.mlp_bias; ++i)
    builder.bias(i == 0 ? Role::kUpBias : Role::kGated, prefix + run[i], inner);
  builder.matrix(Role::kDown, prefix + names.down, builder.hidden(), inner, Init::kResidualNormal);
  if (decoder.mlp_bias) builder.bias(Role::kDownBias, prefix + names.down, builder.hidden());
  if (!names.down_norm.empty())
    builder.norm(Role::kDownNorm, Role::kDownNormBias, prefix + names.down_norm);
  // Not multiplied, but the widest, and only read by an activation.
  builder.multiplied(decoder.gated ? "gate_up" : "up", up);
  builder.multiplied("product", inner, kRemade);
  // Made last, on the way to y, which nothing makes again.
  if (decoder.norms_after) {
    builder.stash_of_stream("down", builder.hidden());
    builder.stash_of_stream("down_scale", builder.norm_scales());
  }
  builder.matmul(decoder.gated ? "gate_up" : "up", builder.hidden(), up);
  builder.matmul("down", inner, builder.hidden());
}

void add_experts(LayerBuilder& builder, const std::string& prefix, int group) {
  const MoeSpec& moe = builder.decoder().moe;
  // The products of experts read copies of its rows.
  add_norm(builder, prefix, moe.shared_inner > 0 ? ForWeights::kGathered : ForWeights::kNothing);
  builder.matrix(Role::kRouter, prefix + builder.names().router, moe.num_experts, builder.hidden());
  if (moe.has_bias)
    builder
        .parameter(Role::kRouterBias, prefix + builder.names().router_bias, {moe.num_experts},
                   Init::kZeros)
        .rule = UpdateRule::kBalance;
  // A choice is never made twice: tokens would go elsewhere when a layer is computed again.
  builder.stash_of_stream("chosen", moe.top_k, StashClass::kInput).dtype = DType::kInt32;
  builder.stash_of_stream("router", moe.num_experts);
  builder.stash_of_stream("weights", moe.top_k, kRemade);
  builder.matmul("router", builder.hidden(), moe.num_experts);
  if (moe.shared_inner > 0) add_gated(builder, prefix + builder.names().shared, moe.shared_inner);
  builder.use_group(group);
  add_matrices(builder, prefix, moe.inner);
  builder.multiplied_of_experts("expert_gate_up", 2 * moe.inner);
  builder.multiplied_of_experts("expert_product", moe.inner, kRemade);
  builder.matmul("expert_gate_up", builder.hidden(), moe.top_k * 2 * moe.inner);
  builder.matmul("expert_down", moe.top_k * moe.inner, builder.hidden());
}

}  // namespace ptrain::model
