#include "core/model/build.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/family.h"
#include "core/model/layer_builder.h"

namespace ptrain::model {
namespace {

// Adds layers one by one, with their parameters.
class Builder {
 public:
  Builder(recipe::Model config, Decoder decoder, ComputeDTypes dtypes)
      : dtypes_(std::move(dtypes)) {
    result_.config = std::move(config);
    result_.decoder = std::move(decoder);
    result_.dtype = wide_of(dtypes_.all);
    result_.compute_dtype = dtypes_.all;
  }

  Architecture build() {
    embedding();
    for (std::int64_t i = 0; i < config().num_hidden_layers; ++i) block(i);
    head();
    for (const int layer : layers_with_experts_)
      result_.groups.push_back({layer, true, dtypes_.of(layer)});
    return std::move(result_);
  }

 private:
  const recipe::Model& config() const { return result_.config; }
  const Decoder& decoder() const { return result_.decoder; }
  const ParameterNames& names() const { return result_.decoder.names; }

  LayerSpec& begin_layer(LayerKind kind) {
    LayerSpec layer;
    layer.index = result_.num_groups();
    layer.kind = kind;
    layer.compute_dtype = dtypes_.of(layer.index);
    layer.groups = {layer.index};
    result_.groups.push_back({layer.index, false, layer.compute_dtype});
    return result_.layers.emplace_back(std::move(layer));
  }

  // The group of this layer's experts, behind those of all layers.
  int begin_experts(LayerSpec& layer) {
    const int group =
        static_cast<int>(config().num_hidden_layers + 2 + std::ssize(layers_with_experts_));
    layers_with_experts_.push_back(layer.index);
    layer.groups.push_back(group);
    return group;
  }

  void embedding() {
    LayerSpec& layer = begin_layer(LayerKind::kEmbedding);
    LayerBuilder builder(result_, layer);
    builder.parameter(Role::kEmbedding, names().embedding + ".weight",
                      {config().vocab_size, config().hidden_size});
    if (decoder().num_positions > 0)
      builder.parameter(Role::kPositions, names().positions + ".weight",
                        {decoder().num_positions, config().hidden_size});
    builder.segment({"embedding", 0, 0});
  }

  void block(std::int64_t index) {
    LayerSpec& layer = begin_layer(LayerKind::kBlock);
    LayerBuilder builder(result_, layer);
    const std::string prefix = fmt::format(fmt::runtime(names().block), index);
    if (decoder().latent.key_value_rank > 0) {
      add_latent_attention(builder, prefix);
    } else {
      add_attention(builder, prefix);
    }
    if (decoder().experts_in(index)) {
      add_experts(builder, prefix, begin_experts(layer));
    } else {
      add_mlp(builder, prefix);
    }
  }

  void head() {
    LayerSpec& layer = begin_layer(LayerKind::kHead);
    LayerBuilder builder(result_, layer);
    builder.norm(Role::kNorm, Role::kNormBias, names().final_norm);
    if (config().tie_word_embeddings) {
      layer.parameters.push_back(0);
      layer.groups.insert(layer.groups.begin(), 0);
    } else {
      builder.parameter(Role::kHead, names().head + ".weight",
                        {config().vocab_size, config().hidden_size});
    }
    builder.stash_of_stream("x", config().hidden_size, StashClass::kInput);
    builder.matmul("head", config().hidden_size, config().vocab_size);
  }

  ComputeDTypes dtypes_;
  Architecture result_;
  std::vector<int> layers_with_experts_;
};

}  // namespace

Architecture build_architecture(recipe::Model config, Decoder decoder, ComputeDTypes dtypes) {
  return Builder(std::move(config), std::move(decoder), std::move(dtypes)).build();
}

Result<Architecture> make_architecture(const recipe::Model& config, DType compute_dtype) {
  PTRAIN_TRY(recipe::Model model, complete(config));
  PTRAIN_TRY(const Family* family, find_family(model.family));
  Decoder decoder = family->decoder(model);
  return build_architecture(std::move(model), std::move(decoder), {compute_dtype});
}

}  // namespace ptrain::model
