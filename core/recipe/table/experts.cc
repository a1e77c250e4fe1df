#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_model = [](auto& recipe, std::size_t) -> auto& { return recipe.model; };

Field count(const char* path, std::int64_t Model::*member, const char* unit,
            const char* description) {
  return row({.path = std::string("model.") + path,
              .unit = unit,
              .range = {0, 65536},
              .description = description},
             in_model, member);
}

Field number(const char* path, double Model::*member, const char* description) {
  return row({.path = std::string("model.") + path, .range = {0, 1e6}, .description = description},
             in_model, member);
}

void add_sizes(std::vector<Field>& all) {
  append(all,
         count("num_experts", &Model::num_experts, "experts",
               "Experts of a layer among which a router chooses (mixtral, qwen3_moe, deepseek)."),
         count("num_experts_per_tok", &Model::num_experts_per_tok, "experts",
               "Experts that a token passes."),
         row({.path = "model.moe_intermediate_size",
              .unit = "elements",
              .range = {0, 1 << 22},
              .description = "Width inside one expert (qwen3_moe, deepseek; mixtral: "
                             "intermediate_size)."},
             in_model, &Model::moe_intermediate_size),
         count("n_shared_experts", &Model::n_shared_experts, "experts",
               "Experts that every token passes beside the chosen ones (deepseek)."),
         count("first_k_dense_replace", &Model::first_k_dense_replace, "layers",
               "First layers, which have an MLP in place of experts (deepseek)."),
         count("decoder_sparse_step", &Model::decoder_sparse_step, "layers",
               "Every how many layers one has experts (qwen3_moe); 0: 1."),
         row({.path = "model.mlp_only_layers",
              .by_commas = true,
              .description = "Layers without experts (qwen3_moe): indices from 0, separated by "
                             "commas."},
             in_model, &Model::mlp_only_layers));
}

void add_router(std::vector<Field>& all) {
  append(all,
         row({.path = "model.norm_topk_prob",
              .description = "Whether the weights of a token's experts add up to 1 (qwen3_moe, "
                             "deepseek_v3; mixtral's always do)."},
             in_model, &Model::norm_topk_prob),
         number("routed_scaling_factor", &Model::routed_scaling_factor,
                "Multiplies these weights (deepseek); 0: 1."),
         count("n_group", &Model::n_group, "groups",
               "Groups of experts (deepseek), of which a token looks at topk_group; 0: 1."),
         count("topk_group", &Model::topk_group, "groups",
               "Groups that a token chooses experts from (deepseek); 0: 1."),
         number("router_aux_loss_coef", &Model::router_aux_loss_coef,
                "Of the balance loss of every layer and row: experts x sum over experts of share "
                "of choices x mean probability, which is 1 where all are chosen alike. It is not "
                "in the loss that is shown."),
         number("router_z_loss_coef", &Model::router_z_loss_coef,
                "Of the mean square of log-sum-exp of the router's logits, of every layer and "
                "row."),
         number("router_bias_update_rate", &Model::router_bias_update_rate,
                "What a step adds to the bias of an expert that was chosen less often than the "
                "mean, and takes from others (deepseek_v3: published 0.001)."),
         number("expert_capacity_factor", &Model::expert_capacity_factor,
                "Of the mean load: how many tokens of a row an expert takes, the first ones; 0: "
                "all that choose it."));
}

void add_latent(std::vector<Field>& all) {
  append(all,
         count("q_lora_rank", &Model::q_lora_rank, "elements",
               "Width of the latent that queries come from (deepseek); 0: they come from the "
               "stream itself."),
         count("kv_lora_rank", &Model::kv_lora_rank, "elements",
               "Width of the latent that keys and values come from (deepseek)."),
         count("qk_nope_head_dim", &Model::qk_nope_head_dim, "elements",
               "Part of a query's or key's head that has no positions (deepseek)."),
         count("qk_rope_head_dim", &Model::qk_rope_head_dim, "elements",
               "Part of it that has rotary positions; keys share it over all heads (deepseek)."),
         count("v_head_dim", &Model::v_head_dim, "elements", "Size of a value's head (deepseek)."));
}

}  // namespace

void add_experts(std::vector<Field>& all) {
  add_sizes(all);
  add_router(all);
  add_latent(all);
}

}  // namespace ptrain::recipe::table
