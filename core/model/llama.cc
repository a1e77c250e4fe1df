#include <fmt/format.h>

#include <utility>

#include "core/model/architecture.h"

namespace ptrain::model {
namespace {

// Bounds that keep every product of sizes inside 63 bits.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 22;
constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 28;
constexpr std::int64_t kMaxLayers = std::int64_t{1} << 14;

Status check_size(std::string_view field, std::int64_t value, std::int64_t limit) {
  if (value >= 1 && value <= limit) return {};
  return fail(ExitCode::kUsage, fmt::format("model.{} is {}", field, value),
              fmt::format("give a whole number from 1 to {}", limit));
}

// Sizes that follow from others where the recipe leaves them 0.
recipe::Model complete(recipe::Model config) {
  if (config.num_key_value_heads == 0) config.num_key_value_heads = config.num_attention_heads;
  return config;
}

Status check_sizes(const recipe::Model& config) {
  PTRAIN_CHECK(check_size("hidden_size", config.hidden_size, kMaxWidth));
  PTRAIN_CHECK(check_size("intermediate_size", config.intermediate_size, kMaxWidth));
  PTRAIN_CHECK(check_size("num_hidden_layers", config.num_hidden_layers, kMaxLayers));
  PTRAIN_CHECK(check_size("num_attention_heads", config.num_attention_heads, kMaxWidth));
  PTRAIN_CHECK(check_size("num_key_value_heads", config.num_key_value_heads, kMaxWidth));
  return check_size("vocab_size", config.vocab_size, kMaxVocabulary);
}

Result<recipe::Model> with_head_dim(recipe::Model config) {
  const std::int64_t heads = config.num_attention_heads;
  if (config.head_dim == 0) {
    if (config.hidden_size % heads != 0) {
      return fail(ExitCode::kUsage,
                  fmt::format("model.hidden_size {} is not a multiple of "
                              "model.num_attention_heads {}",
                              config.hidden_size, heads),
                  "change one of them or give model.head_dim");
    }
    config.head_dim = config.hidden_size / heads;
  }
  PTRAIN_CHECK(check_size("head_dim", config.head_dim, kMaxWidth / heads));
  if (config.head_dim % 2 != 0) {
    return fail(ExitCode::kUsage, fmt::format("model.head_dim {} is odd", config.head_dim),
                "rotary positions turn pairs of elements: make it even");
  }
  if (heads % config.num_key_value_heads != 0) {
    return fail(ExitCode::kUsage,
                fmt::format("model.num_attention_heads {} is not a multiple of "
                            "model.num_key_value_heads {}",
                            heads, config.num_key_value_heads),
                "every key-value head serves the same number of attention heads");
  }
  return config;
}

// Adds layers one by one, with their parameters.
class Builder {
 public:
  Builder(recipe::Model config, DType dtype) {
    result_.config = std::move(config);
    result_.dtype = dtype;
  }

  Architecture build() {
    embedding();
    for (std::int64_t i = 0; i < config().num_hidden_layers; ++i) block(i);
    head();
    return std::move(result_);
  }

 private:
  const recipe::Model& config() const { return result_.config; }
  std::int64_t hidden() const { return config().hidden_size; }
  std::int64_t inner() const { return config().intermediate_size; }
  std::int64_t query() const { return config().num_attention_heads * config().head_dim; }
  std::int64_t key() const { return config().num_key_value_heads * config().head_dim; }

  LayerSpec& begin_layer(LayerKind kind) {
    LayerSpec layer;
    layer.index = result_.num_groups();
    layer.kind = kind;
    layer.groups = {layer.index};
    return result_.layers.emplace_back(std::move(layer));
  }

  void add(LayerSpec& layer, std::string name, std::vector<std::int64_t> shape,
           Init init = Init::kNormal) {
    layer.parameters.push_back(static_cast<int>(result_.parameters.size()));
    ParameterSpec parameter{std::move(name), std::move(shape), layer.index, init};
    parameter.decays = parameter.shape.size() > 1;
    result_.parameters.push_back(std::move(parameter));
  }

  StashTensor kept(std::string name, std::int64_t elements, bool is_input = false) const {
    return {std::move(name), elements, result_.dtype, is_input};
  }

  static Segment matmul(std::string name, std::int64_t in, std::int64_t out) {
    return {std::move(name), 2.0 * static_cast<double>(in) * static_cast<double>(out), 0};
  }

  void embedding() {
    LayerSpec& layer = begin_layer(LayerKind::kEmbedding);
    add(layer, "model.embed_tokens.weight", {config().vocab_size, hidden()});
    layer.segments = {{"embedding", 0, 0}};
  }

  // Query, key and value are neighbours, and so are gate and up: the engine multiplies each as
  // one matrix.
  void block(std::int64_t index) {
    LayerSpec& layer = begin_layer(LayerKind::kBlock);
    const std::string prefix = fmt::format("model.layers.{}.", index);
    add(layer, prefix + "input_layernorm.weight", {hidden()}, Init::kOnes);
    add(layer, prefix + "self_attn.q_proj.weight", {query(), hidden()});
    add(layer, prefix + "self_attn.k_proj.weight", {key(), hidden()});
    add(layer, prefix + "self_attn.v_proj.weight", {key(), hidden()});
    add(layer, prefix + "self_attn.o_proj.weight", {hidden(), query()}, Init::kResidualNormal);
    add(layer, prefix + "post_attention_layernorm.weight", {hidden()}, Init::kOnes);
    add(layer, prefix + "mlp.gate_proj.weight", {inner(), hidden()});
    add(layer, prefix + "mlp.up_proj.weight", {inner(), hidden()});
    add(layer, prefix + "mlp.down_proj.weight", {hidden(), inner()}, Init::kResidualNormal);
    layer.stash = block_stash();
    layer.segments = block_segments();
  }

  std::vector<StashTensor> block_stash() const {
    return {kept("x", hidden(), true),  kept("norm1", hidden()),
            kept("norm1_scale", 1),     kept("qkv", query() + 2 * key()),
            kept("attention", query()), kept("log_sum_exp", config().num_attention_heads),
            kept("x2", hidden()),       kept("norm2", hidden()),
            kept("norm2_scale", 1),     kept("gate_up", 2 * inner()),
            kept("product", inner())};
  }

  // Scores and weighted values: 2 FLOPs each for every element of a head.
  std::vector<Segment> block_segments() const {
    return {matmul("qkv", hidden(), query() + 2 * key()),
            {"attention", 0, 4.0 * static_cast<double>(query())},
            matmul("output", query(), hidden()),
            matmul("gate_up", hidden(), 2 * inner()),
            matmul("down", inner(), hidden())};
  }

  void head() {
    LayerSpec& layer = begin_layer(LayerKind::kHead);
    add(layer, "model.norm.weight", {hidden()}, Init::kOnes);
    if (config().tie_word_embeddings) {
      layer.parameters.push_back(0);
      layer.groups.insert(layer.groups.begin(), 0);
    } else {
      add(layer, "lm_head.weight", {config().vocab_size, hidden()});
    }
    layer.stash = {kept("x", hidden(), true)};
    layer.segments = {matmul("head", hidden(), config().vocab_size)};
  }

  Architecture result_;
};

}  // namespace

Result<Architecture> llama(const recipe::Model& config, DType dtype) {
  recipe::Model sizes = complete(config);
  PTRAIN_CHECK(check_sizes(sizes));
  PTRAIN_TRY(sizes, with_head_dim(std::move(sizes)));
  return Builder(std::move(sizes), dtype).build();
}

}  // namespace ptrain::model
