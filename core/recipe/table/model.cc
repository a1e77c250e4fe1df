#include "core/recipe/model_limits.h"
#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_model = [](auto& recipe, std::size_t) -> auto& { return recipe.model; };
constexpr auto in_scaling = [](auto& recipe, std::size_t) -> auto& {
  return recipe.model.rope_scaling;
};

void add_model_sizes(std::vector<Field>& all) {
  append(all,
         row({.path = "model.hidden_size",
              .unit = "elements",
              .required = true,
              .range = {1, kMostHidden},
              .description = "Width of the residual stream."},
             in_model, &Model::hidden_size),
         row({.path = "model.intermediate_size",
              .unit = "elements",
              .required = true,
              .range = {1, kMostIntermediate},
              .description = "Width inside the feed-forward part."},
             in_model, &Model::intermediate_size),
         row({.path = "model.num_hidden_layers",
              .unit = "layers",
              .required = true,
              .range = {1, kMostLayers},
              .description = "Number of blocks."},
             in_model, &Model::num_hidden_layers),
         row({.path = "model.num_attention_heads",
              .unit = "heads",
              .required = true,
              .range = {1, kMostHeads},
              .description = "Number of query heads."},
             in_model, &Model::num_attention_heads),
         row({.path = "model.num_key_value_heads",
              .unit = "heads",
              .range = {0, kMostHeads},
              .description = "Number of key and value heads; 0: as many as query heads."},
             in_model, &Model::num_key_value_heads),
         row({.path = "model.head_dim",
              .unit = "elements",
              .range = {0, kMostHeadDim},
              .description = "Size of a head, even; 0: the family's (qwen3 128, gemma 256), or "
                             "hidden_size / num_attention_heads."},
             in_model, &Model::head_dim),
         row({.path = "model.vocab_size",
              .unit = "tokens",
              .range = {0, kMostVocabulary},
              .description = "Rows of the embedding; 0: what the tokenizer needs, padded to a "
                             "multiple of 64."},
             in_model, &Model::vocab_size));
}

void add_maths(std::vector<Field>& all) {
  append(
      all,
      choice<decltype(in_model), Model, Activation>(
          {.path = "model.hidden_act",
           .unavailable = {"relu", "quick_gelu"},
           .description = "Activation of the MLP; auto: the family's. gelu_new is another name of "
                          "gelu_pytorch_tanh."},
          in_model, &Model::hidden_act,
          {{"auto", Activation::kFamily},
           {"silu", Activation::kSilu},
           {"gelu", Activation::kGelu},
           {"gelu_pytorch_tanh", Activation::kGeluTanh},
           {"gelu_new", Activation::kGeluTanh}}),
      row({.path = "model.attention_bias",
           .description = "Whether queries, keys, values and output have biases (llama, qwen3, "
                          "gemma; qwen2 and gpt2 have theirs anyway)."},
          in_model, &Model::attention_bias),
      row({.path = "model.mlp_bias", .description = "Whether the MLP has biases (llama)."},
          in_model, &Model::mlp_bias),
      row({.path = "model.rms_norm_eps",
           .range = {0, 1, true},
           .zero_word = "auto",
           .description = "Added to the mean square in RMSNorm; auto: the family's (llama, mistral "
                          "1e-5, qwen and gemma 1e-6)."},
          in_model, &Model::rms_norm_eps),
      row({.path = "model.layer_norm_eps",
           .range = {0, 1, true},
           .zero_word = "auto",
           .description = "Added to the variance in LayerNorm (gpt2); auto: 1e-5."},
          in_model, &Model::layer_norm_eps),
      row({.path = "model.query_pre_attn_scalar",
           .range = {0, 1 << 20, true},
           .zero_word = "auto",
           .description = "Scores are divided by its root (gemma); auto: head_dim."},
          in_model, &Model::query_pre_attn_scalar),
      row({.path = "model.attn_logit_softcapping",
           .range = {0, 1e6},
           .description = "c: scores become c tanh(score / c) (gemma2: 50); 0: they do not."},
          in_model, &Model::attn_logit_softcapping),
      row({.path = "model.final_logit_softcapping",
           .range = {0, 1e6},
           .description = "The same of the logits (gemma2: 30)."},
          in_model, &Model::final_logit_softcapping));
}

void add_positions(std::vector<Field>& all) {
  append(
      all,
      row({.path = "model.max_position_embeddings",
           .unit = "tokens",
           .range = {0, 1 << 24},
           .description = "Rows of the table of learned positions (gpt2; 0: 1024), which no row of "
                          "a shape may exceed; elsewhere only kept for an exported model."},
          in_model, &Model::max_position_embeddings),
      row({.path = "model.sliding_window",
           .unit = "tokens",
           .range = {0, 1 << 24},
           .description = "Tokens that a query sees, itself among them (mistral, qwen, gemma); 0: "
                          "all before it (gemma: 4096)."},
          in_model, &Model::sliding_window),
      row({.path = "model.max_window_layers",
           .unit = "layers",
           .range = {0, 4096},
           .description = "First layers, which have no window (qwen)."},
          in_model, &Model::max_window_layers),
      row({.path = "model.layer_types",
           .by_commas = true,
           .description = "Which layers have the window (qwen, gemma): `full_attention` and "
                          "`sliding_attention`, separated by commas and repeated over the layers; "
                          "empty: all, in gemma as published."},
          in_model, &Model::layer_types),
      row({.path = "model.rope_theta",
           .range = {1, 1e12},
           .zero_word = "auto",
           .description = "Base of the rotary angles; auto: the family's (1e4; qwen and gemma3 "
                          "1e6)."},
          in_model, &Model::rope_theta),
      row({.path = "model.rope_local_base_freq",
           .range = {1, 1e12},
           .zero_word = "auto",
           .description = "The same for layers with a window (gemma3); auto: 1e4."},
          in_model, &Model::rope_local_base_freq));
}

template <class Member>
Field scaling_row(const char* name, Member RopeScaling::*member, const char* description,
                  const char* unit = "") {
  return row({.path = std::string("model.rope_scaling.") + name,
              .unit = unit,
              .range = {0, 1e12},
              .description = description},
             in_scaling, member);
}

void add_rope_scaling(std::vector<Field>& all) {
  append(
      all,
      choice<decltype(in_scaling), RopeScaling, RopeType>(
          {.path = "model.rope_scaling.rope_type",
           .unavailable = {"dynamic", "longrope"},
           .description = "How rotary positions are stretched; default: not."},
          in_scaling, &RopeScaling::rope_type,
          {{"default", RopeType::kDefault},
           {"linear", RopeType::kLinear},
           {"llama3", RopeType::kLlama3},
           {"yarn", RopeType::kYarn}}),
      scaling_row("factor", &RopeScaling::factor, "Stretch; every rope_type but default."),
      scaling_row("original_max_position_embeddings",
                  &RopeScaling::original_max_position_embeddings,
                  "Context before the stretch; llama3 and yarn.", "tokens"),
      scaling_row("low_freq_factor", &RopeScaling::low_freq_factor, "llama3."),
      scaling_row("high_freq_factor", &RopeScaling::high_freq_factor, "llama3."),
      scaling_row("attention_factor", &RopeScaling::attention_factor,
                  "Multiplies cosines and sines (yarn); 0: 0.1 ln(factor) + 1."),
      scaling_row("beta_fast", &RopeScaling::beta_fast, "yarn; 0: 32."),
      scaling_row("beta_slow", &RopeScaling::beta_slow, "yarn; 0: 1."),
      scaling_row("mscale", &RopeScaling::mscale,
                  "yarn, with mscale_all_dim: the attention factor from both."),
      scaling_row("mscale_all_dim", &RopeScaling::mscale_all_dim, "yarn, with mscale."),
      row({.path = "model.rope_scaling.truncate", .description = "yarn: whole bounds of the ramp."},
          in_scaling, &RopeScaling::truncate));
}

}  // namespace

void add_model(std::vector<Field>& all) {
  append(all,
         row({.path = "model.file",
              .description = "YAML file with the fields of `model`, beside the recipe or in "
                             "configs/models; fields given here win over the file's."},
             in_model, &Model::file),
         row({.path = "model.hf",
              .description = "Folder of Hugging Face, relative to the recipe: its config.json "
                             "gives all fields of `model`, which are then left out here, and its "
                             "safetensors the weights that the run begins with. The data must then "
                             "be tokens of its own tokenizer, which `scripts/prepare_data.py "
                             "--tokenizer FOLDER/tokenizer.json` makes; `recipes/finetune-hf.yaml` "
                             "shows how."},
             in_model, &Model::hf),
         row({.path = "model.family",
              .choices = {"llama", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3",
                          "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"},
              .unavailable = {"qwen2_moe", "gpt_oss"},
              .description = "Architecture; qwen2 is Qwen 2.5 as well. A field that a family has "
                             "no use for is refused."},
             in_model, &Model::family));
  add_model_sizes(all);
  add_maths(all);
  add_positions(all);
  add_rope_scaling(all);
  add_experts(all);
  append(
      all,
      row({.path = "model.initializer_range",
           .range = {0, 10, true},
           .description = "Standard deviation of the initial weights."},
          in_model, &Model::initializer_range),
      row({.path = "model.tie_word_embeddings",
           .description = "Whether the head uses the embedding's weights (published gpt2 and gemma "
                          "models do)."},
          in_model, &Model::tie_word_embeddings));
}

}  // namespace ptrain::recipe::table
