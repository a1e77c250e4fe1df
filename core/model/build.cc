#include "core/model/build.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/family.h"

namespace ptrain::model {
namespace {

// Adds layers one by one, with their parameters.
class Builder {
 public:
  Builder(recipe::Model config, Decoder decoder, DType compute_dtype) {
    result_.config = std::move(config);
    result_.decoder = std::move(decoder);
    result_.dtype = wide_of(compute_dtype);
    result_.compute_dtype = compute_dtype;
  }

  Architecture build() {
    embedding();
    for (std::int64_t i = 0; i < config().num_hidden_layers; ++i) block(i);
    head();
    return std::move(result_);
  }

 private:
  const recipe::Model& config() const { return result_.config; }
  const Decoder& decoder() const { return result_.decoder; }
  const ParameterNames& names() const { return result_.decoder.names; }
  std::int64_t hidden() const { return config().hidden_size; }
  std::int64_t inner() const { return config().intermediate_size; }
  std::int64_t query() const { return config().num_attention_heads * config().head_dim; }
  std::int64_t key() const { return config().num_key_value_heads * config().head_dim; }
  std::int64_t up() const { return decoder().gated ? 2 * inner() : inner(); }
  std::int64_t norm_scales() const { return decoder().norm == NormKind::kLayerNorm ? 2 : 1; }

  LayerSpec& begin_layer(LayerKind kind) {
    LayerSpec layer;
    layer.index = result_.num_groups();
    layer.kind = kind;
    layer.groups = {layer.index};
    result_.groups.push_back({layer.index});
    return result_.layers.emplace_back(std::move(layer));
  }

  ParameterSpec& add(LayerSpec& layer, Role role, std::string name, std::vector<std::int64_t> shape,
                     Init init = Init::kNormal) {
    layer.parameters.push_back(static_cast<int>(result_.parameters.size()));
    ParameterSpec& parameter = result_.parameters.emplace_back();
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.group = layer.index;
    parameter.init = init;
    parameter.decays = parameter.shape.size() > 1;
    parameter.role = role;
    return parameter;
  }

  void add_matrix(LayerSpec& layer, Role role, const std::string& name, std::int64_t out,
                  std::int64_t in) {
    const bool residual = role == Role::kOutput || role == Role::kDown;
    const bool transposed = decoder().linears_transposed;
    const std::vector<std::int64_t> shape =
        transposed ? std::vector{in, out} : std::vector{out, in};
    add(layer, role, name + ".weight", shape, residual ? Init::kResidualNormal : Init::kNormal)
        .transposed = transposed;
  }

  void add_bias(LayerSpec& layer, Role role, const std::string& name, std::int64_t size) {
    add(layer, role, name + ".bias", {size}, Init::kZeros);
  }

  // An empty name: no such norm.
  void add_norm(LayerSpec& layer, Role role, Role bias, const std::string& name) {
    if (name.empty()) return;
    add_scale(layer, role, name, hidden());
    if (decoder().norm == NormKind::kLayerNorm) add_bias(layer, bias, name, hidden());
  }

  // Each is 1 at first.
  void add_scale(LayerSpec& layer, Role role, const std::string& name, std::int64_t size) {
    const bool plus_one = decoder().norm == NormKind::kRmsPlusOne;
    add(layer, role, name + ".weight", {size}, plus_one ? Init::kZeros : Init::kOnes);
  }

  StashTensor stashed(std::string name, std::int64_t elements,
                      StashClass stash_class = StashClass::kKept) const {
    return {std::move(name), elements, result_.dtype, stash_class};
  }

  // What a matrix multiplies.
  StashTensor multiplied(std::string name, std::int64_t elements,
                         StashClass stash_class = StashClass::kKept) const {
    return {std::move(name), elements, result_.compute_dtype, stash_class};
  }

  static Segment matmul(std::string name, std::int64_t in, std::int64_t out) {
    return {std::move(name), 2.0 * static_cast<double>(in) * static_cast<double>(out), 0};
  }

  void embedding() {
    LayerSpec& layer = begin_layer(LayerKind::kEmbedding);
    add(layer, Role::kEmbedding, names().embedding + ".weight", {config().vocab_size, hidden()});
    if (decoder().num_positions > 0)
      add(layer, Role::kPositions, names().positions + ".weight",
          {decoder().num_positions, hidden()});
    layer.segments = {{"embedding", 0, 0}};
  }

  void block(std::int64_t index) {
    LayerSpec& layer = begin_layer(LayerKind::kBlock);
    const std::string prefix = fmt::format(fmt::runtime(names().block), index);
    const auto in_block = [&](const std::string& name) {
      return name.empty() ? name : prefix + name;
    };
    add_norm(layer, Role::kNorm, Role::kNormBias, in_block(names().norm));
    attention(layer, prefix);
    add_norm(layer, Role::kOutputNorm, Role::kOutputNormBias, in_block(names().output_norm));
    add_norm(layer, Role::kMlpNorm, Role::kMlpNormBias, in_block(names().mlp_norm));
    mlp(layer, prefix);
    add_norm(layer, Role::kDownNorm, Role::kDownNormBias, in_block(names().down_norm));
    layer.stash = block_stash();
    layer.segments = block_segments();
  }

  // The matrices of a run are neighbours, and so are its biases: the engine multiplies a run as one
  // matrix.
  void attention(LayerSpec& layer, const std::string& prefix) {
    struct Linear {
      std::string name;
      std::int64_t size;
    };
    std::vector<Linear> run = {
        {names().query, query()}, {names().key, key()}, {names().value, key()}};
    if (!names().query_key_value.empty()) run = {{names().query_key_value, query() + 2 * key()}};
    for (std::size_t i = 0; i < run.size(); ++i)
      add_matrix(layer, i == 0 ? Role::kQuery : Role::kKeyValue, prefix + run[i].name, run[i].size,
                 hidden());
    for (std::size_t i = 0; i < run.size() && decoder().attention_bias; ++i)
      add_bias(layer, i == 0 ? Role::kQueryBias : Role::kKeyValue, prefix + run[i].name,
               run[i].size);
    if (decoder().query_key_norm) {
      add_scale(layer, Role::kQueryNorm, prefix + names().query_norm, config().head_dim);
      add_scale(layer, Role::kKeyNorm, prefix + names().key_norm, config().head_dim);
    }
    add_matrix(layer, Role::kOutput, prefix + names().output, hidden(), query());
    if (decoder().output_bias)
      add_bias(layer, Role::kOutputBias, prefix + names().output, hidden());
  }

  void mlp(LayerSpec& layer, const std::string& prefix) {
    std::vector<std::string> run = {names().up};
    if (decoder().gated) run = {names().gate, names().up};
    for (std::size_t i = 0; i < run.size(); ++i)
      add_matrix(layer, i == 0 ? Role::kUp : Role::kGated, prefix + run[i], inner(), hidden());
    for (std::size_t i = 0; i < run.size() && decoder().mlp_bias; ++i)
      add_bias(layer, i == 0 ? Role::kUpBias : Role::kGated, prefix + run[i], inner());
    add_matrix(layer, Role::kDown, prefix + names().down, hidden(), inner());
    if (decoder().mlp_bias) add_bias(layer, Role::kDownBias, prefix + names().down, hidden());
  }

  std::vector<StashTensor> block_stash() const {
    constexpr auto kRemade = StashClass::kRemade;
    std::vector<StashTensor> stash = {stashed("x", hidden(), StashClass::kInput),
                                      multiplied("norm1", hidden(), kRemade),
                                      stashed("norm1_scale", norm_scales(), kRemade)};
    const auto add = [&](StashTensor tensor) { stash.push_back(std::move(tensor)); };
    if (decoder().query_key_norm) {
      const auto heads = config().num_attention_heads + config().num_key_value_heads;
      // Where these two are not kept, qkv holds queries and keys as they were before the norm.
      add(stashed("query_key", query() + key(), kRemade));
      add(stashed("query_key_scale", heads, kRemade));
    }
    add(stashed("qkv", query() + 2 * key()));
    add(multiplied("attention", query()));
    add(stashed("log_sum_exp", config().num_attention_heads));
    if (decoder().norms_after) {
      add(stashed("output", hidden()));
      add(stashed("output_scale", norm_scales(), kRemade));
    }
    // Without the norm the product is added into it.
    add(stashed("x2", hidden(), decoder().norms_after ? kRemade : StashClass::kKept));
    add(multiplied("norm2", hidden(), kRemade));
    add(stashed("norm2_scale", norm_scales(), kRemade));
    // Not multiplied, but the widest, and only read by an activation.
    add(multiplied(decoder().gated ? "gate_up" : "up", up()));
    add(multiplied("product", inner(), kRemade));
    // Made last, on the way to y, which nothing makes again.
    if (decoder().norms_after) {
      add(stashed("down", hidden()));
      add(stashed("down_scale", norm_scales()));
    }
    return stash;
  }

  // Scores and weighted values: 2 FLOPs each for every element of a head.
  std::vector<Segment> block_segments() const {
    return {matmul("qkv", hidden(), query() + 2 * key()),
            {"attention", 0, 4.0 * static_cast<double>(query())},
            matmul("output", query(), hidden()),
            matmul(decoder().gated ? "gate_up" : "up", hidden(), up()),
            matmul("down", inner(), hidden())};
  }

  void head() {
    LayerSpec& layer = begin_layer(LayerKind::kHead);
    add_norm(layer, Role::kNorm, Role::kNormBias, names().final_norm);
    if (config().tie_word_embeddings) {
      layer.parameters.push_back(0);
      layer.groups.insert(layer.groups.begin(), 0);
    } else {
      add(layer, Role::kHead, names().head + ".weight", {config().vocab_size, hidden()});
    }
    layer.stash = {stashed("x", hidden(), StashClass::kInput)};
    layer.segments = {matmul("head", hidden(), config().vocab_size)};
  }

  Architecture result_;
};

}  // namespace

Architecture build_architecture(recipe::Model config, Decoder decoder, DType compute_dtype) {
  return Builder(std::move(config), std::move(decoder), compute_dtype).build();
}

Result<Architecture> make_architecture(const recipe::Model& config, DType compute_dtype) {
  PTRAIN_TRY(recipe::Model model, complete(config));
  PTRAIN_TRY(const Family* family, find_family(model.family));
  Decoder decoder = family->decoder(model);
  return build_architecture(std::move(model), std::move(decoder), compute_dtype);
}

}  // namespace ptrain::model
