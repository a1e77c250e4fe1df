#include "core/model/families/experts.h"
#include "core/model/families/families.h"

namespace ptrain::model::families {
namespace {

// Softmax over all experts; of groups those with the best expert are looked at.
Decoder decoder(const recipe::Model& model) {
  Decoder decoder = deepseek_decoder(model);
  decoder.moe.group_score = GroupScore::kBest;
  return decoder;
}

}  // namespace

// DeepSeek-V2 and V2-Lite: latent attention, experts beside shared ones; weights of the chosen are
// not made to add up to 1.
Family deepseek_v2() {
  HfDialect hf = deepseek_dialect("deepseek_v2", "DeepseekV2ForCausalLM");
  hf.defaults.num_experts = 64;
  hf.defaults.n_shared_experts = 2;
  hf.defaults.moe_intermediate_size = 1407;
  hf.fixed.emplace_back("norm_topk_prob", false);
  hf.fixed.emplace_back("mlp_bias", false);
  return {.name = "deepseek_v2",
          .fields = deepseek_fields(),
          .complete = complete_deepseek,
          .decoder = decoder,
          .hf = std::move(hf)};
}

}  // namespace ptrain::model::families
