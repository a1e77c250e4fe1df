#include "core/model/families/experts.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

Decoder decoder(const recipe::Model& model) {
  Decoder decoder = deepseek_decoder(model);
  decoder.moe.score = RouterScore::kSigmoid;
  decoder.moe.has_bias = true;
  decoder.moe.group_score = GroupScore::kTwoBest;
  return decoder;
}

}  // namespace

// DeepSeek-V3: V2 with a sigmoid router, whose bias chooses experts but does not weigh them. Layers
// that predict further tokens are left out, as in transformers.
Family deepseek_v3() {
  HfDialect hf = deepseek_dialect("deepseek_v3", "DeepseekV3ForCausalLM");
  hf.defaults.num_experts = 256;
  hf.defaults.num_experts_per_tok = 8;
  hf.defaults.n_shared_experts = 1;
  hf.defaults.moe_intermediate_size = 2048;
  hf.defaults.first_k_dense_replace = 3;
  hf.defaults.norm_topk_prob = true;
  hf.defaults.routed_scaling_factor = 2.5;
  hf.defaults.n_group = 8;
  hf.defaults.topk_group = 4;
  hf.fixed.emplace_back("rope_interleave", true);
  std::vector<std::string_view> fields = deepseek_fields();
  fields.insert(fields.end(), {"norm_topk_prob", "router_bias_update_rate"});
  return {.name = "deepseek_v3",
          .fields = std::move(fields),
          .complete = complete_deepseek,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
