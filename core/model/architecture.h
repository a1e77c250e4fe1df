#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/result.h"
#include "core/model/decoder.h"
#include "core/model/parameter.h"
#include "core/model/place.h"
#include "core/recipe/recipe.h"

namespace ptrain::model {

// What recomputation does with a tensor of the stash.
enum class StashClass {
  kInput,  // of the layer: kept even where the whole layer is computed again
  kKept,   // only a matrix product or attention can make it again
  kRemade  // element-wise work makes it again from tensors that are kept
};

// Whether the products that make the gradients of weights read a tensor of the stash: as it was
// kept, or as the gradient that the input's backward left in its place. kGathered: where ranks of
// the tensor axis share the layer they read a copy with the rows of all.
enum class ForWeights { kNothing, kItself, kGathered };

// What the rows of a tensor of the stash are (Architecture::rows_of). kExperts: what experts of
// this rank work on, which is known when it has come; kCall: there is one row.
enum class StashRows { kTokens, kStream, kExperts, kCall };

// One tensor that a forward keeps for its backward.
struct StashTensor {
  std::string name;
  std::int64_t elements_per_token = 0;  // of a row
  DType dtype = DType::kFloat32;
  StashClass stash_class = StashClass::kKept;
  StashRows rows = StashRows::kTokens;
  ForWeights for_weights = ForWeights::kNothing;
  bool operator==(const StashTensor&) const = default;
};

struct Segment {
  std::string name;
  double flops_per_token = 0;          // forward matmuls
  double flops_per_attended_pair = 0;  // forward, a (query, key) pair
  bool operator==(const Segment&) const = default;
};

enum class LayerKind { kEmbedding, kBlock, kHead };

// What is gathered and reduced together, in one buffer. Group i belongs to layer i; behind those
// of all layers come the experts of the layers that have some.
struct GroupSpec {
  int layer = 0;
  bool experts = false;                   // sharded and reduced over the axes that experts see
  DType compute_dtype = DType::kFloat32;  // of whole parameters: that of the layer
  bool operator==(const GroupSpec&) const = default;
};

// Layer 0 is the embedding, 1..L the blocks, L+1 the final norm with the head.
struct LayerSpec {
  int index = 0;
  LayerKind kind = LayerKind::kBlock;
  DType compute_dtype = DType::kFloat32;  // of whole parameters, and of what they multiply
  bool held = true;                // false: of other pipeline ranks; then all lists are empty
  std::vector<int> parameters;     // indices into Architecture::parameters, in the code's order
  std::vector<int> groups;         // buffers it reads, ascending; a tied head also 0
  std::vector<StashTensor> stash;  // in the order the layer's code reads
  std::vector<Segment> segments;
  bool operator==(const LayerSpec&) const = default;
};

struct Architecture {
  recipe::Model config;           // every size filled in
  Decoder decoder;                // what the layers compute
  DType dtype = DType::kFloat32;  // of master parameters, gradients, moments, the residual stream
  DType compute_dtype = DType::kFloat32;  // of layers to which a layout gives none of their own
  std::vector<ParameterSpec> parameters;
  std::vector<LayerSpec> layers;  // L + 2
  std::vector<GroupSpec> groups;
  AxisPlace tensor;         // of the rank whose part this is (part.h)
  AxisPlace ring, ulysses;  // the ranks that share rows with it
  ExpertPlace experts;
  VocabularyPlace embedding, head;

  // Of `tokens` that the ranks of the tensor axis share, the residual stream of each holds equal
  // parts, in their order.
  std::int64_t stream_rows(std::int64_t tokens) const { return tokens / tensor.size; }
  // Routed experts of a layer that this rank holds, or holds columns of.
  std::int64_t num_held_experts() const { return decoder.moe.num_experts / experts.ep; }
  // The most that these may get to work on: a token of each rank passes an expert once.
  std::int64_t most_expert_rows(std::int64_t tokens) const;
  // The most where data decides.
  std::int64_t rows_of(const StashTensor& tensor_of_layer, std::int64_t tokens) const;
  // Whether it must stay from BACKWARD_INPUT to BACKWARD_WEIGHT.
  bool is_for_weights(const StashTensor& tensor_of_layer) const {
    return tensor_of_layer.for_weights == ForWeights::kItself ||
           (tensor_of_layer.for_weights == ForWeights::kGathered && tensor.size == 1);
  }
  // Whether a layer that this rank holds has a stream here: not where an embedding or a head is
  // spread and its stage is another rank's.
  bool has_stream(const LayerSpec& layer) const;
  // Of the head's matrix, where this rank holds the head.
  std::int64_t num_head_rows() const;
  int num_groups() const { return static_cast<int>(groups.size()); }
  std::int64_t num_parameters() const;
  // Parameters that take part in a token's matmuls: all but norms and the embedding look-up; a tied
  // head counts once, of experts those that a token passes.
  std::int64_t num_matmul_parameters() const;
  bool operator==(const Architecture&) const = default;
};

// Of the family named in the config; dtype is wide_of(compute_dtype). Errors (kUsage): those of
// complete() in family.h.
Result<Architecture> make_architecture(const recipe::Model& config, DType compute_dtype);

// Model FLOPs of one token in a row of `sequence` tokens, forward and backward, causal:
// 6 N + 6 L h s.
double train_flops_per_token(const Architecture& architecture, std::int64_t sequence);

}  // namespace ptrain::model
