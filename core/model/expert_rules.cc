#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/model/family.h"
#include "core/model/layer_types.h"
#include "core/model/rules.h"

namespace ptrain::model {
namespace {

using recipe::Breach;
using Breaches = std::vector<Breach>;

// Of all layers: each has three matrices of its own, with names.
constexpr std::int64_t kMostExperts = 1 << 18;

void refuse(Breaches& out, std::vector<std::string> paths, std::string message) {
  out.push_back({std::move(paths), std::move(message)});
}

// Fields without which the family has no sizes.
void need(Breaches& out, const recipe::Model& model, std::string_view field, std::int64_t value) {
  const auto family = find_family(model.family);
  if (value > 0 || !family || !(*family)->uses(field)) return;
  refuse(out, {fmt::format("model.{}", field), "model.family"},
         fmt::format("is missing: family {} cannot do without; give it", model.family));
}

void check_choice(const recipe::Model& model, Breaches& out) {
  if (model.num_experts_per_tok > model.num_experts)
    refuse(out, {"model.num_experts_per_tok", "model.num_experts"},
           fmt::format("is {}, but there are {} experts; give at most as many",
                       model.num_experts_per_tok, model.num_experts));
  if (model.num_experts * model.num_hidden_layers > kMostExperts)
    refuse(out, {"model.num_experts", "model.num_hidden_layers"},
           fmt::format("is {} in each of {} layers; at most {} experts in all", model.num_experts,
                       model.num_hidden_layers, kMostExperts));
  if (model.num_experts == 1)
    refuse(out, {"model.num_experts"}, "is 1, which leaves nothing to choose; give 2 or more");
}

void check_groups(const recipe::Model& model, Breaches& out) {
  const std::int64_t groups = std::max<std::int64_t>(model.n_group, 1);
  const std::int64_t looked_at = std::max<std::int64_t>(model.topk_group, 1);
  if (model.num_experts % groups != 0)
    return refuse(out, {"model.n_group", "model.num_experts"},
                  fmt::format("is {}, which does not divide num_experts {}; groups are equal",
                              groups, model.num_experts));
  if (looked_at > groups)
    return refuse(
        out, {"model.topk_group", "model.n_group"},
        fmt::format("is {}, but there are {} groups; give at most as many", looked_at, groups));
  const std::int64_t of_group = model.num_experts / groups;
  if (looked_at * of_group < model.num_experts_per_tok)
    refuse(out, {"model.topk_group", "model.num_experts_per_tok"},
           fmt::format("is {}: so many groups hold {} experts, fewer than the {} of a token",
                       looked_at, looked_at * of_group, model.num_experts_per_tok));
  if (model.family == "deepseek_v3" && groups > 1 && of_group < 2)
    refuse(out, {"model.n_group", "model.num_experts"},
           "leaves one expert a group, but a group is worth its two best; give fewer groups");
}

void check_dense_layers(const recipe::Model& model, Breaches& out) {
  if (model.first_k_dense_replace > model.num_hidden_layers)
    refuse(out, {"model.first_k_dense_replace", "model.num_hidden_layers"},
           fmt::format("is {}, but there are {} layers", model.first_k_dense_replace,
                       model.num_hidden_layers));
  for (const std::string& word : words_of(model.mlp_only_layers)) {
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), layer);
    const bool is_whole = error == std::errc{} && end == word.data() + word.size();
    if (is_whole && layer >= 0 && layer < model.num_hidden_layers && std::to_string(layer) == word)
      continue;
    return refuse(out, {"model.mlp_only_layers", "model.num_hidden_layers"},
                  fmt::format("has '{}'; give indices of layers from 0 to {}, separated by commas",
                              word, model.num_hidden_layers - 1));
  }
}

}  // namespace

Breaches expert_breaches(const recipe::Model& model) {
  Breaches out;
  need(out, model, "num_experts", model.num_experts);
  need(out, model, "num_experts_per_tok", model.num_experts_per_tok);
  need(out, model, "moe_intermediate_size", model.moe_intermediate_size);
  if (!out.empty() || model.num_experts == 0) return out;
  check_choice(model, out);
  check_groups(model, out);
  check_dense_layers(model, out);
  return out;
}

Breaches latent_breaches(const recipe::Model& model) {
  Breaches out;
  need(out, model, "kv_lora_rank", model.kv_lora_rank);
  need(out, model, "qk_nope_head_dim", model.qk_nope_head_dim);
  need(out, model, "qk_rope_head_dim", model.qk_rope_head_dim);
  need(out, model, "v_head_dim", model.v_head_dim);
  if (!out.empty() || model.kv_lora_rank == 0) return out;
  if (model.qk_rope_head_dim % 2 != 0)
    refuse(out, {"model.qk_rope_head_dim"},
           fmt::format("is {}; rotary positions turn pairs of elements: make it even",
                       model.qk_rope_head_dim));
  if (model.num_key_value_heads != 0 && model.num_key_value_heads != model.num_attention_heads)
    refuse(out, {"model.num_key_value_heads", "model.num_attention_heads"},
           "differs from num_attention_heads, but every head has its own keys and values here; "
           "leave it out");
  return out;
}

}  // namespace ptrain::model
