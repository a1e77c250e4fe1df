#include "core/model/names.h"

#include <array>
#include <string_view>

namespace ptrain::model {
namespace {

struct Renamed {
  std::string_view name;
  std::array<std::string_view, 2> torchtitan;  // the second may be empty
};

constexpr std::array<Renamed, 3> kOutside{{
    {"model.embed_tokens.weight", {"tok_embeddings.weight", ""}},
    {"model.norm.weight", {"norm.weight", ""}},
    {"lm_head.weight", {"lm_head.weight", "output.weight"}},
}};

// Behind `model.layers.N.` there, behind `layers.N.` in torchtitan.
constexpr std::array<Renamed, 9> kInBlock{{
    {"input_layernorm.weight", {"attention_norm.weight", ""}},
    {"self_attn.q_proj.weight", {"attention.wq.weight", "attention.qkv_linear.wq.weight"}},
    {"self_attn.k_proj.weight", {"attention.wk.weight", "attention.qkv_linear.wk.weight"}},
    {"self_attn.v_proj.weight", {"attention.wv.weight", "attention.qkv_linear.wv.weight"}},
    {"self_attn.o_proj.weight", {"attention.wo.weight", ""}},
    {"post_attention_layernorm.weight", {"ffn_norm.weight", ""}},
    {"mlp.gate_proj.weight", {"feed_forward.w1.weight", ""}},
    {"mlp.down_proj.weight", {"feed_forward.w2.weight", ""}},
    {"mlp.up_proj.weight", {"feed_forward.w3.weight", ""}},
}};

template <std::size_t N>
std::vector<std::string> look_up(const std::array<Renamed, N>& table, std::string_view name,
                                 const std::string& prefix) {
  std::vector<std::string> names;
  for (const Renamed& row : table)
    for (const std::string_view other : row.torchtitan)
      if (row.name == name && !other.empty()) names.push_back(prefix + std::string(other));
  return names;
}

}  // namespace

std::vector<std::string> torchtitan_names(const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return look_up(kOutside, name, "");
  const std::size_t dot = name.find('.', kLayers.size());
  if (dot == std::string::npos) return {};
  const std::string number = name.substr(kLayers.size(), dot - kLayers.size());
  return look_up(kInBlock, std::string_view(name).substr(dot + 1), "layers." + number + ".");
}

std::int64_t rotary_head_rows(const std::string& name, const recipe::Model& config) {
  const bool turned =
      name.ends_with("self_attn.q_proj.weight") || name.ends_with("self_attn.k_proj.weight");
  return turned ? config.head_dim : 0;
}

}  // namespace ptrain::model
