#include <fmt/format.h>

#include <utility>

#include "core/model/architecture.h"
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

  StashTensor kept(std::string name, std::int64_t elements, bool is_input = false) const {
    return {std::move(name), elements, result_.dtype, is_input};
  }

  // What a matrix multiplies.
  StashTensor multiplied(std::string name, std::int64_t elements) const {
    return {std::move(name), elements, result_.compute_dtype, false};
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
    std::vector<StashTensor> stash = {kept("x", hidden(), true), multiplied("norm1", hidden()),
                                      kept("norm1_scale", norm_scales())};
    const auto add = [&](std::string name, std::int64_t elements) {
      stash.push_back(kept(std::move(name), elements));
    };
    const auto add_multiplied = [&](std::string name, std::int64_t elements) {
      stash.push_back(multiplied(std::move(name), elements));
    };
    if (decoder().query_key_norm) {
      add("query_key", query() + key());
      add("query_key_scale", config().num_attention_heads + config().num_key_value_heads);
    }
    add("qkv", query() + 2 * key());
    add_multiplied("attention", query());
    add("log_sum_exp", config().num_attention_heads);
    if (decoder().norms_after) add("output", hidden()), add("output_scale", norm_scales());
    add("x2", hidden());
    add_multiplied("norm2", hidden());
    add("norm2_scale", norm_scales());
    // Not multiplied, but the widest, and only read by an activation.
    add_multiplied(decoder().gated ? "gate_up" : "up", up());
    add_multiplied("product", inner());
    if (decoder().norms_after) add("down", hidden()), add("down_scale", norm_scales());
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
    layer.stash = {kept("x", hidden(), true)};
    layer.segments = {matmul("head", hidden(), config().vocab_size)};
  }

  Architecture result_;
};

}  // namespace

Result<Architecture> make_architecture(const recipe::Model& config, DType compute_dtype) {
  PTRAIN_TRY(recipe::Model model, complete(config));
  PTRAIN_TRY(const Family* family, find_family(model.family));
  Decoder decoder = family->decoder(model);
  return Builder(std::move(model), std::move(decoder), compute_dtype).build();
}

}  // namespace ptrain::model
