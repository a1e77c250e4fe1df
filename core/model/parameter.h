#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptrain::model {

// The smallest run of elements that a shard may not split. kRun: kRunElements, counted from the
// parameter's start; the last may be shorter.
enum class BlockKind { kElement, kRun, kRow, kMatrix };
inline constexpr std::int64_t kRunElements = 256;

// How a parameter is updated. kSgd keeps no momentum.
// kBalance: of a router's bias, whose gradient is how far loads are from their mean (MoeSpec).
enum class UpdateRule { kAdamW, kAdam8bit, kMuon, kLion, kSgd, kSgdMomentum, kBalance };

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
  kRouter,
  kRouterBias,
  kExpertUp,    // gate and up of each expert, expert by expert; the first of all
  kExpertDown,  // down of each expert, in their order; the first
  kExpert,      // the others of both runs
  kSharedUp,    // gate, then up (kGated)
  kSharedDown,
  kQueryDown,  // latent attention
  kQueryDownNorm,
  kKeyValueDown,
  kKeyValueDownNorm,
  kKeyValueUp,  // what makes queries, from their latent or the stream, is kQuery
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
  // Where this is the part of a parameter that one rank holds (part.h): the whole's shape, and
  // where the part begins in it. Empty: it is the whole.
  std::vector<std::int64_t> whole_shape = {};
  std::vector<std::int64_t> offsets = {};
  bool counts = true;  // this rank's copy is the one that the norm and checkpoints count
  int sum_ranks = 1;   // neighbours on the tensor axis whose gradients add up to its gradient
  std::int64_t num_elements() const;
  std::int64_t block_elements() const;
  bool operator==(const ParameterSpec&) const = default;
};

}  // namespace ptrain::model
