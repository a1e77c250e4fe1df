#include "core/model/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/model/families/families.h"

namespace ptrain::model {

std::string HfDialect::name_of(std::string_view field) const {
  for (const auto& [ours, theirs] : names)
    if (ours == field) return theirs;
  return std::string(field);
}

bool Family::uses(std::string_view field) const {
  return std::ranges::find(fields, field) != fields.end();
}

std::span<const Family> all_families() {
  static const std::vector<Family> all = {
      families::llama(),     families::mistral(),     families::qwen2(),      families::qwen3(),
      families::gpt2(),      families::gemma2(),      families::gemma3(),     families::mixtral(),
      families::qwen3_moe(), families::deepseek_v2(), families::deepseek_v3()};
  return all;
}

Result<const Family*> find_family(std::string_view name) {
  std::vector<std::string> names;
  for (const Family& family : all_families()) {
    if (family.name == name) return &family;
    names.push_back(family.name);
  }
  return fail(ExitCode::kUsage, fmt::format("model.family '{}' is not known", name),
              fmt::format("allowed: {}", fmt::join(names, ", ")));
}

namespace {

const recipe::Model kUnset;

#define PTRAIN_OPTIONAL(field)                                                     \
  {                                                                                \
#field, [](const recipe::Model& model) { return model.field != kUnset.field; } \
  }

const std::array kOptional = {OptionalField PTRAIN_OPTIONAL(head_dim),
                              OptionalField PTRAIN_OPTIONAL(num_key_value_heads),
                              OptionalField PTRAIN_OPTIONAL(hidden_act),
                              OptionalField PTRAIN_OPTIONAL(attention_bias),
                              OptionalField PTRAIN_OPTIONAL(mlp_bias),
                              OptionalField PTRAIN_OPTIONAL(rms_norm_eps),
                              OptionalField PTRAIN_OPTIONAL(layer_norm_eps),
                              OptionalField PTRAIN_OPTIONAL(rope_theta),
                              OptionalField PTRAIN_OPTIONAL(rope_scaling),
                              OptionalField PTRAIN_OPTIONAL(rope_local_base_freq),
                              OptionalField PTRAIN_OPTIONAL(sliding_window),
                              OptionalField PTRAIN_OPTIONAL(max_window_layers),
                              OptionalField PTRAIN_OPTIONAL(layer_types),
                              OptionalField PTRAIN_OPTIONAL(query_pre_attn_scalar),
                              OptionalField PTRAIN_OPTIONAL(attn_logit_softcapping),
                              OptionalField PTRAIN_OPTIONAL(final_logit_softcapping),
                              OptionalField PTRAIN_OPTIONAL(num_experts),
                              OptionalField PTRAIN_OPTIONAL(num_experts_per_tok),
                              OptionalField PTRAIN_OPTIONAL(moe_intermediate_size),
                              OptionalField PTRAIN_OPTIONAL(n_shared_experts),
                              OptionalField PTRAIN_OPTIONAL(first_k_dense_replace),
                              OptionalField PTRAIN_OPTIONAL(decoder_sparse_step),
                              OptionalField PTRAIN_OPTIONAL(mlp_only_layers),
                              OptionalField PTRAIN_OPTIONAL(norm_topk_prob),
                              OptionalField PTRAIN_OPTIONAL(routed_scaling_factor),
                              OptionalField PTRAIN_OPTIONAL(n_group),
                              OptionalField PTRAIN_OPTIONAL(topk_group),
                              OptionalField PTRAIN_OPTIONAL(router_aux_loss_coef),
                              OptionalField PTRAIN_OPTIONAL(router_z_loss_coef),
                              OptionalField PTRAIN_OPTIONAL(router_bias_update_rate),
                              OptionalField PTRAIN_OPTIONAL(expert_capacity_factor),
                              OptionalField PTRAIN_OPTIONAL(q_lora_rank),
                              OptionalField PTRAIN_OPTIONAL(kv_lora_rank),
                              OptionalField PTRAIN_OPTIONAL(qk_nope_head_dim),
                              OptionalField PTRAIN_OPTIONAL(qk_rope_head_dim),
                              OptionalField PTRAIN_OPTIONAL(v_head_dim)};

#undef PTRAIN_OPTIONAL

}  // namespace

std::span<const OptionalField> optional_fields() { return kOptional; }

}  // namespace ptrain::model
