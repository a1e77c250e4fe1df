#include "core/model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace ptrain::model {
namespace {

std::int64_t product(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool is_matrix(const ParameterSpec& parameter) { return parameter.shape.size() > 1; }

// Tables only give rows, unless the head multiplies with the same matrix.
bool only_looked_up(const Architecture& architecture, const ParameterSpec& parameter) {
  return parameter.role == Role::kPositions ||
         (parameter.role == Role::kEmbedding && !architecture.config.tie_word_embeddings);
}

}  // namespace

std::int64_t ParameterSpec::num_elements() const { return product(shape); }

std::int64_t ParameterSpec::block_elements() const {
  switch (block) {
    case BlockKind::kElement:
      return 1;
    case BlockKind::kRun:
      return kRunElements;
    case BlockKind::kRow:
      return shape.size() < 2 ? 1 : shape.back();
    case BlockKind::kMatrix:
      return num_elements();
  }
  return 1;
}

bool Architecture::has_stream(const LayerSpec& layer) const {
  switch (layer.kind) {
    case LayerKind::kEmbedding:
      return embedding.has_stream();
    case LayerKind::kBlock:
      break;
    case LayerKind::kHead:
      return head.has_stream();
  }
  return true;
}

std::int64_t Architecture::num_head_rows() const {
  return parameters[static_cast<std::size_t>(layers.back().parameters.back())].shape.front();
}

std::int64_t Architecture::num_parameters() const {
  std::int64_t sum = 0;
  for (const ParameterSpec& parameter : parameters) sum += parameter.num_elements();
  return sum;
}

std::int64_t Architecture::num_matmul_parameters() const {
  std::int64_t sum = 0, of_experts = 0;
  for (const ParameterSpec& parameter : parameters) {
    if (!is_matrix(parameter) || only_looked_up(*this, parameter)) continue;
    const bool of_expert = groups[static_cast<std::size_t>(parameter.group)].experts;
    (of_expert ? of_experts : sum) += parameter.num_elements();
  }
  if (of_experts == 0) return sum;
  return sum + of_experts / decoder.moe.num_experts * decoder.moe.top_k;
}

std::int64_t Architecture::most_expert_rows(std::int64_t tokens) const {
  return stream_rows(tokens) * experts.size() * std::min(decoder.moe.top_k, num_held_experts());
}

std::int64_t Architecture::rows_of(const StashTensor& tensor_of_layer, std::int64_t tokens) const {
  switch (tensor_of_layer.rows) {
    case StashRows::kTokens:
      return tokens;
    case StashRows::kStream:
      return stream_rows(tokens);
    case StashRows::kExperts:
      return most_expert_rows(tokens);
    case StashRows::kCall:
      return 1;
  }
  return 0;
}

double train_flops_per_token(const Architecture& architecture, std::int64_t sequence) {
  const recipe::Model& config = architecture.config;
  const LatentSpec& latent = architecture.decoder.latent;
  // Scores are as wide as keys, what they weigh is as wide as values.
  const std::int64_t value = latent.key_value_rank > 0 ? latent.value_dim : config.head_dim;
  const double width =
      static_cast<double>(config.num_attention_heads * (config.head_dim + value)) / 2;
  return 6.0 * static_cast<double>(architecture.num_matmul_parameters()) +
         6.0 * static_cast<double>(config.num_hidden_layers) * width *
             static_cast<double>(sequence);
}

}  // namespace ptrain::model
