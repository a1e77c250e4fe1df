#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/architecture.h"

namespace ptrain::model {

// Adds to one layer of an architecture what its parts consist of: parameters, stash and segments,
// each list in the order of the layer's code.
class LayerBuilder {
 public:
  LayerBuilder(Architecture& architecture, LayerSpec& layer)
      : architecture_(architecture), layer_(layer), group_(layer.index) {}

  const recipe::Model& config() const { return architecture_.config; }
  const Decoder& decoder() const { return architecture_.decoder; }
  const ParameterNames& names() const { return architecture_.decoder.names; }
  // Whether what matrices multiply is narrower than sums.
  bool rounds() const { return layer_.compute_dtype != architecture_.dtype; }
  std::int64_t hidden() const { return config().hidden_size; }
  std::int64_t norm_scales() const { return decoder().norm == NormKind::kLayerNorm ? 2 : 1; }
  // Where parameters go that are added from now on.
  void use_group(int group) { group_ = group; }

  ParameterSpec& parameter(Role role, std::string name, std::vector<std::int64_t> shape,
                           Init init = Init::kNormal);
  // An output or down projection has smaller initial values.
  void matrix(Role role, const std::string& name, std::int64_t out, std::int64_t in,
              Init init = Init::kNormal);
  void bias(Role role, const std::string& name, std::int64_t size);
  // An empty name: no such norm.
  void norm(Role role, Role bias, const std::string& name);
  // Each is 1 at first.
  void scale(Role role, const std::string& name, std::int64_t size);

  // In the wide dtype.
  StashTensor& stash(std::string name, std::int64_t elements,
                     StashClass stash_class = StashClass::kKept);
  // What a matrix multiplies, or makes in the dtype of products: weights' gradients read it.
  StashTensor& multiplied(std::string name, std::int64_t elements,
                          StashClass stash_class = StashClass::kKept);
  // The same, with the rows of the residual stream.
  StashTensor& stash_of_stream(std::string name, std::int64_t elements,
                               StashClass stash_class = StashClass::kKept);
  StashTensor& multiplied_of_stream(std::string name, std::int64_t elements,
                                    StashClass stash_class = StashClass::kKept);
  // With the rows that experts work on.
  StashTensor& multiplied_of_experts(std::string name, std::int64_t elements,
                                     StashClass stash_class = StashClass::kKept);

  // A token's FLOPs in a matrix of in x out.
  void matmul(std::string name, std::int64_t in, std::int64_t out);
  void segment(Segment segment) { layer_.segments.push_back(std::move(segment)); }

 private:
  Architecture& architecture_;
  LayerSpec& layer_;
  int group_;
};

// The parts of a block, each with its norm; prefix: what begins the names of the block.
void add_attention(LayerBuilder& builder, const std::string& prefix);
void add_latent_attention(LayerBuilder& builder, const std::string& prefix);
void add_mlp(LayerBuilder& builder, const std::string& prefix);
// group: of the experts.
void add_experts(LayerBuilder& builder, const std::string& prefix, int group);

}  // namespace ptrain::model
