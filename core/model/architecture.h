#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/result.h"
#include "core/model/decoder.h"
#include "core/recipe/recipe.h"

namespace ptrain::model {

// The smallest run of elements that a shard may not split. kRun: kRunElements, counted from the
// parameter's start; the last may be shorter.
enum class BlockKind { kElement, kRun, kRow, kMatrix };
inline constexpr std::int64_t kRunElements = 256;

// How a parameter is updated. kSgd keeps no momentum.
enum class UpdateRule { kAdamW, kAdam8bit, kMuon, kLion, kSgd, kSgdMomentum };

// Initial values: normal(0, initializer_range); the same divided by sqrt(2 L); constants.
enum class Init { kNormal, kResidualNormal, kOnes, kZeros };

// What a parameter is in its layer. Weights and biases of one linear follow each other as runs:
// kQuery stands for the first of the matrices that make queries, keys and values (one or three).
enum class Role {
  kEmbedding,
  kPositions,
  kNorm,  // before attention; of the head: before the matrix
  kNormBias,
  kQuery,
  kQueryBias,
  kKeyValue,  // the other matrices and biases of the run
  kQueryNorm,
  kKeyNorm,
  kOutput,
  kOutputBias,
  kOutputNorm,
  kOutputNormBias,
  kMlpNorm,
  kMlpNormBias,
  kUp,  // the first of gate and up; up alone
  kUpBias,
  kGated,  // the others of the run
  kDown,
  kDownBias,
  kDownNorm,
  kDownNormBias,
  kHead
};

struct ParameterSpec {
  std::string name;                 // Hugging Face name, without a prefix of ours
  std::vector<std::int64_t> shape;  // as Hugging Face stores it: linear weights are [out, in]
  int group = 0;                    // the buffer it lives in = the layer that owns it
  Init init = Init::kNormal;
  bool decays = true;  // weight decay applies (not on parameters of one dim)
  BlockKind block = BlockKind::kElement;
  UpdateRule rule = UpdateRule::kAdamW;
  Role role = Role::kNorm;
  bool transposed = false;  // a linear's weight that is stored as [in, out]
  std::int64_t num_elements() const;
  std::int64_t block_elements() const;
  bool operator==(const ParameterSpec&) const = default;
};

// What recomputation does with a tensor of the stash.
enum class StashClass {
  kInput,  // of the layer: kept even where the whole layer is computed again
  kKept,   // only a matrix product or attention can make it again
  kRemade  // element-wise work makes it again from tensors that are kept
};

// One tensor that a forward keeps for its backward.
struct StashTensor {
  std::string name;
  std::int64_t elements_per_token = 0;
  DType dtype = DType::kFloat32;
  StashClass stash_class = StashClass::kKept;
  bool operator==(const StashTensor&) const = default;
};

struct Segment {
  std::string name;
  double flops_per_token = 0;          // forward matmuls
  double flops_per_attended_pair = 0;  // forward, a (query, key) pair
  bool operator==(const Segment&) const = default;
};

enum class LayerKind { kEmbedding, kBlock, kHead };

// Layer 0 is the embedding, 1..L the blocks, L+1 the final norm with the head.
struct LayerSpec {
  int index = 0;
  LayerKind kind = LayerKind::kBlock;
  std::vector<int> parameters;     // indices into Architecture::parameters, in the code's order
  std::vector<int> groups;         // buffers it reads, ascending; a tied head reads its own and 0
  std::vector<StashTensor> stash;  // in the order the layer's code reads
  std::vector<Segment> segments;
  bool operator==(const LayerSpec&) const = default;
};

struct Architecture {
  recipe::Model config;           // every size filled in
  Decoder decoder;                // what the layers compute
  DType dtype = DType::kFloat32;  // of master parameters, gradients, moments, the residual stream
  DType compute_dtype = DType::kFloat32;  // of whole parameters, and of what they multiply
  std::vector<ParameterSpec> parameters;
  std::vector<LayerSpec> layers;  // L + 2

  int num_groups() const { return static_cast<int>(layers.size()); }
  std::int64_t num_parameters() const;
  // Parameters that take part in matmuls: all but norms and the embedding look-up; a tied head
  // counts once.
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
