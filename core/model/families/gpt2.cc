#include "core/model/families/common.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

void complete(recipe::Model& model) {
  set_default(model.hidden_act, recipe::Activation::kGeluTanh);
  set_default(model.layer_norm_eps, 1e-5);
  set_default<std::int64_t>(model.max_position_embeddings, 1024);
  set_default(model.intermediate_size, 4 * model.hidden_size);
}

// Hugging Face keeps the matrices of a block as [in, out], queries, keys and values in one.
ParameterNames names() {
  return {.embedding = "transformer.wte",
          .positions = "transformer.wpe",
          .block = "transformer.h.{}.",
          .norm = "ln_1",
          .query = "",
          .key = "",
          .value = "",
          .query_key_value = "attn.c_attn",
          .query_norm = "",
          .key_norm = "",
          .output = "attn.c_proj",
          .output_norm = "",
          .mlp_norm = "ln_2",
          .gate = "",
          .up = "mlp.c_fc",
          .down = "mlp.c_proj",
          .down_norm = "",
          .final_norm = "transformer.ln_f"};
}

Decoder decoder(const recipe::Model& model) {
  Decoder decoder;
  decoder.norm = NormKind::kLayerNorm;
  decoder.norm_eps = model.layer_norm_eps;
  decoder.attention_bias = decoder.output_bias = decoder.mlp_bias = true;
  decoder.linears_transposed = true;
  decoder.gated = false;
  decoder.activation = model.hidden_act;
  decoder.attention_scalar = static_cast<double>(model.head_dim);
  decoder.num_positions = model.max_position_embeddings;
  decoder.layers.resize(static_cast<std::size_t>(model.num_hidden_layers));
  decoder.names = names();
  return decoder;
}

}  // namespace

// GPT-2: LayerNorm, learned positions, biases everywhere, a plain MLP with GELU.
Family gpt2() {
  HfDialect hf{.model_type = "gpt2", .architecture = "GPT2LMHeadModel"};
  hf.names = {{"hidden_size", "n_embd"},
              {"intermediate_size", "n_inner"},
              {"num_hidden_layers", "n_layer"},
              {"num_attention_heads", "n_head"},
              {"max_position_embeddings", "n_positions"},
              {"hidden_act", "activation_function"},
              {"layer_norm_eps", "layer_norm_epsilon"}};
  hf.defaults.layer_norm_eps = 1e-5;
  hf.defaults.max_position_embeddings = 1024;
  hf.defaults.tie_word_embeddings = true;
  hf.fixed = {{"scale_attn_weights", true},
              {"scale_attn_by_inverse_layer_idx", false},
              {"reorder_and_upcast_attn", false},
              {"add_cross_attention", false}};
  return {.name = "gpt2",
          .fields = {"hidden_act", "layer_norm_eps"},
          .complete = complete,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
