#include "core/model/families/experts.h"

#include <algorithm>

#include "core/model/layer_types.h"

namespace ptrain::model::families {

MoeSpec moe_of(const recipe::Model& model, std::int64_t inner) {
  MoeSpec moe;
  moe.num_experts = model.num_experts;
  moe.top_k = model.num_experts_per_tok;
  moe.inner = inner;
  moe.shared_inner = model.n_shared_experts * inner;
  moe.normalises = model.norm_topk_prob;
  moe.scale = model.routed_scaling_factor == 0 ? 1 : model.routed_scaling_factor;
  moe.num_groups = std::max<std::int64_t>(model.n_group, 1);
  moe.top_groups = std::max<std::int64_t>(model.topk_group, 1);
  moe.balance_loss = model.router_aux_loss_coef;
  moe.z_loss = model.router_z_loss_coef;
  moe.bias_rate = model.router_bias_update_rate;
  moe.capacity_factor = model.expert_capacity_factor;
  return moe;
}

bool has_experts(const recipe::Model& model, std::int64_t layer) {
  const std::int64_t step = std::max<std::int64_t>(model.decoder_sparse_step, 1);
  if (layer < model.first_k_dense_replace || (layer + 1) % step != 0) return false;
  const std::vector<std::string> dense = words_of(model.mlp_only_layers);
  return std::ranges::find(dense, std::to_string(layer)) == dense.end();
}

std::vector<bool> layers_with_experts(const recipe::Model& model) {
  std::vector<bool> layers;
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer)
    layers.push_back(has_experts(model, layer));
  return layers;
}

}  // namespace ptrain::model::families
