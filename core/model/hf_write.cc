#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/model/family.h"
#include "core/model/hf_config.h"
#include "core/model/hf_words.h"
#include "core/model/layer_types.h"

namespace ptrain::model {
namespace {

using nlohmann::ordered_json;

// Writes the config of one family, in the spelling of transformers 4, which 5 reads as well.
class Exporter {
 public:
  Exporter(const Family& family, const recipe::Model& model) : family_(family), model_(model) {}

  std::string write(DType dtype) {
    out_["architectures"] = {family_.hf.architecture};
    out_["model_type"] = family_.hf.model_type;
    sizes();
    for (const std::string_view field : family_.fields) optional(field);
    for (const auto& [name, value] : family_.hf.fixed) out_[name] = value;
    out_["initializer_range"] = model_.initializer_range;
    out_["tie_word_embeddings"] = model_.tie_word_embeddings;
    out_["torch_dtype"] = name_of(dtype);
    return out_.dump(2) + "\n";
  }

 private:
  template <class T>
  void set(std::string_view field, const T& value) {
    out_[family_.hf.name_of(field)] = value;
  }
  // Hugging Face says null where we say 0.
  template <class T>
  void set_or_null(std::string_view field, const T& value) {
    value == T{} ? set(field, ordered_json()) : set(field, ordered_json(value));
  }

  void sizes() {
    set("vocab_size", model_.vocab_size);
    set("hidden_size", model_.hidden_size);
    set("intermediate_size", model_.intermediate_size);
    set("num_hidden_layers", model_.num_hidden_layers);
    set("num_attention_heads", model_.num_attention_heads);
    if (model_.max_position_embeddings > 0)
      set("max_position_embeddings", model_.max_position_embeddings);
  }

  void optional(std::string_view field) {
    if (field == "num_key_value_heads") set(field, model_.num_key_value_heads);
    if (field == "head_dim") set(field, model_.head_dim);
    if (field == "hidden_act") set(field, std::string(activation()));
    if (field == "attention_bias") set(field, model_.attention_bias);
    if (field == "mlp_bias") set(field, model_.mlp_bias);
    if (field == "rms_norm_eps") set(field, model_.rms_norm_eps);
    if (field == "layer_norm_eps") set(field, model_.layer_norm_eps);
    if (field == "query_pre_attn_scalar") scalar();
    if (field == "attn_logit_softcapping") set_or_null(field, model_.attn_logit_softcapping);
    if (field == "final_logit_softcapping") set_or_null(field, model_.final_logit_softcapping);
    if (field == "rope_theta") set(field, model_.rope_theta);
    if (field == "rope_local_base_freq") set(field, model_.rope_local_base_freq);
    if (field == "rope_scaling") scaling();
    if (field == "sliding_window") windows();
    if (field == "layer_types") layer_types();
    experts(field);
    latent(field);
  }

  void experts(std::string_view field) {
    if (field == "num_experts") set(field, model_.num_experts);
    if (field == "num_experts_per_tok") set(field, model_.num_experts_per_tok);
    if (field == "moe_intermediate_size") set(field, model_.moe_intermediate_size);
    if (field == "n_shared_experts") set(field, model_.n_shared_experts);
    if (field == "first_k_dense_replace") set(field, model_.first_k_dense_replace);
    if (field == "decoder_sparse_step") set(field, model_.decoder_sparse_step);
    if (field == "mlp_only_layers") dense_layers();
    if (field == "norm_topk_prob") set(field, model_.norm_topk_prob);
    if (field == "routed_scaling_factor") set(field, model_.routed_scaling_factor);
    if (field == "n_group") set(field, model_.n_group);
    if (field == "topk_group") set(field, model_.topk_group);
    if (field == "router_aux_loss_coef") set(field, model_.router_aux_loss_coef);
    if (family_.name == "deepseek_v2" && field == "topk_group")
      out_["topk_method"] = model_.n_group > 1 ? "group_limited_greedy" : "greedy";
  }

  void latent(std::string_view field) {
    if (field == "q_lora_rank") set_or_null(field, model_.q_lora_rank);
    if (field == "kv_lora_rank") set(field, model_.kv_lora_rank);
    if (field == "qk_nope_head_dim") set(field, model_.qk_nope_head_dim);
    if (field == "qk_rope_head_dim") set(field, model_.qk_rope_head_dim);
    if (field == "v_head_dim") set(field, model_.v_head_dim);
    if (field == "kv_lora_rank") out_["num_nextn_predict_layers"] = 0;
  }

  void dense_layers() {
    std::vector<std::int64_t> layers;
    for (const std::string& word : words_of(model_.mlp_only_layers))
      layers.push_back(std::stoll(word));
    set("mlp_only_layers", layers);
  }

  std::string_view activation() const {
    if (family_.name == "gpt2" && model_.hidden_act == recipe::Activation::kGeluTanh)
      return "gelu_new";
    return word_of(kActivationWords, model_.hidden_act);
  }

  // transformers wants a whole number.
  void scalar() {
    const double value = model_.query_pre_attn_scalar;
    const auto whole = static_cast<std::int64_t>(value);
    if (static_cast<double>(whole) == value) return set("query_pre_attn_scalar", whole);
    set("query_pre_attn_scalar", value);
  }

  void scaling() {
    const recipe::RopeScaling& from = model_.rope_scaling;
    if (from.rope_type == recipe::RopeType::kDefault) return set("rope_scaling", ordered_json());
    ordered_json scaling = {{"rope_type", word_of(kRopeWords, from.rope_type)}};
    for (const ScalingField& field : kScalingFields)
      if (from.*field.member != 0) scaling[std::string(field.name)] = from.*field.member;
    if (from.original_max_position_embeddings > 0)
      scaling["original_max_position_embeddings"] = from.original_max_position_embeddings;
    if (!from.truncate) scaling["truncate"] = false;
    set("rope_scaling", scaling);
  }

  void windows() {
    set_or_null("sliding_window", model_.sliding_window);
    if (family_.hf.has_window_switch) set("use_sliding_window", model_.sliding_window > 0);
    if (family_.hf.has_window_switch) set("max_window_layers", model_.max_window_layers);
  }

  void layer_types() {
    if (model_.layer_types.empty()) return;  // max_window_layers says it
    std::vector<std::string> words;
    for (std::int64_t layer = 0; layer < model_.num_hidden_layers; ++layer)
      words.emplace_back(layer_type(model_.layer_types, layer) == LayerType::kSliding
                             ? kSlidingAttention
                             : kFullAttention);
    set("layer_types", words);
  }

  const Family& family_;
  const recipe::Model& model_;
  ordered_json out_;
};

}  // namespace

Result<std::string> to_hf_config(const recipe::Model& model, DType dtype) {
  PTRAIN_TRY(const recipe::Model whole, complete(model));
  PTRAIN_TRY(const Family* family, find_family(whole.family));
  return Exporter(*family, whole).write(dtype);
}

}  // namespace ptrain::model
