#include "core/model/hf_experts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ptrain::model {
namespace {

using nlohmann::json;

class ExpertReader {
 public:
  ExpertReader(HfReader& reader, const Family& family, recipe::Model& model)
      : reader_(reader), family_(family), model_(model) {}

  void read() {
    read("num_experts", model_.num_experts);
    // transformers 5 has one name for all families.
    if (family_.uses("num_experts")) reader_.read("num_local_experts", model_.num_experts);
    read("num_experts_per_tok", model_.num_experts_per_tok);
    if (model_.num_experts > 0 && model_.num_experts_per_tok == 0)
      reader_.refuse("num_experts_per_tok", "missing or 0");
    read("moe_intermediate_size", model_.moe_intermediate_size);
    read("n_shared_experts", model_.n_shared_experts);
    read("first_k_dense_replace", model_.first_k_dense_replace);
    read("decoder_sparse_step", model_.decoder_sparse_step);
    read("norm_topk_prob", model_.norm_topk_prob);
    read("routed_scaling_factor", model_.routed_scaling_factor);
    read("n_group", model_.n_group);
    read("topk_group", model_.topk_group);
    read("router_aux_loss_coef", model_.router_aux_loss_coef);
    if (family_.uses("mlp_only_layers")) dense_layers();
  }

  void read_latent() {
    read("q_lora_rank", model_.q_lora_rank);
    read("kv_lora_rank", model_.kv_lora_rank);
    read("qk_nope_head_dim", model_.qk_nope_head_dim);
    read("qk_rope_head_dim", model_.qk_rope_head_dim);
    read("v_head_dim", model_.v_head_dim);
    if (!family_.uses("kv_lora_rank")) return;
    for (const char* name : {"head_dim", "qk_head_dim"}) reader_.find(name);  // follow from these
    for (const char* name : {"rope_scaling", "rope_parameters"}) score_factor(name);
  }

  // DeepSeek's words for the router, which its family has already.
  void read_router(std::vector<std::string>& warnings) {
    for (const char* name : {"output_router_logits", "seq_aux", "ep_size", "n_ctx"})
      reader_.find(name);
    only("moe_layer_freq", 1);
    if (family_.name == "deepseek_v3") {
      only("scoring_func", "sigmoid");
      only("topk_method", "noaux_tc");
    } else if (family_.name == "deepseek_v2") {
      only("scoring_func", "softmax");
      method();
    }
    left_out("router_jitter_noise", "routers here have no noise", warnings);
    left_out("num_nextn_predict_layers", "layers that predict further tokens are left out",
             warnings);
    left_out("num_mtp_layers", "layers that predict further tokens are left out", warnings);
  }

 private:
  template <class T>
  void read(std::string_view field, T& value) {
    if (family_.uses(field)) reader_.read(family_.hf.name_of(field), value);
  }

  // Scores are multiplied by what mscale_all_dim says even where mscale is left out, which only
  // cosines and sines need: a model that recipes cannot say.
  void score_factor(const std::string& name) {
    const json* found = reader_.find(name);
    if (found == nullptr || !found->is_object()) return;
    const auto is_set = [&](const char* field) {
      const auto value = found->find(field);
      return value != found->end() && value->is_number() && value->get<double>() != 0;
    };
    if (is_set("mscale_all_dim") && !is_set("mscale"))
      reader_.refuse(name, "mscale_all_dim without mscale is not available here");
  }

  void dense_layers() {
    const json* found = reader_.find("mlp_only_layers");
    if (found == nullptr || found->is_null()) return;
    std::vector<std::int64_t> layers;
    if (!found->is_array()) return reader_.refuse("mlp_only_layers", "is not a list");
    for (const json& layer : *found) {
      if (!layer.is_number_integer())
        return reader_.refuse("mlp_only_layers", "holds what is no index of a layer");
      layers.push_back(layer.get<std::int64_t>());
    }
    model_.mlp_only_layers = fmt::format("{}", fmt::join(layers, ","));
  }

  // Groups count for one method only.
  void method() {
    std::string word = "greedy";
    reader_.read("topk_method", word);
    if (word == "greedy") {
      model_.n_group = model_.topk_group = 1;
    } else if (word != "group_limited_greedy") {
      reader_.refuse("topk_method",
                     fmt::format("'{}' is not known; allowed: greedy, group_limited_greedy", word));
    }
  }

  void only(const std::string& name, const json& wanted) {
    const json* found = reader_.find(name);
    if (found == nullptr || found->is_null() || *found == wanted) return;
    reader_.refuse(name, fmt::format("only {} is available", wanted.dump()));
  }

  void left_out(const std::string& name, std::string_view why, std::vector<std::string>& warnings) {
    const json* found = reader_.find(name);
    if (found == nullptr || !found->is_number() || found->get<double>() == 0) return;
    warnings.push_back(fmt::format("{} is {}, but {}", name, found->dump(), why));
  }

  HfReader& reader_;
  const Family& family_;
  recipe::Model& model_;
};

}  // namespace

void read_experts(HfReader& reader, const Family& family, recipe::Model& model,
                  std::vector<std::string>& warnings) {
  ExpertReader experts(reader, family, model);
  experts.read();
  experts.read_latent();
  if (family.uses("num_experts")) experts.read_router(warnings);
}

}  // namespace ptrain::model
