#include "core/model/layer_builder.h"

namespace ptrain::model {
namespace {

constexpr auto kRemade = StashClass::kRemade;

// The norm and what it reads.
void add_norm(LayerBuilder& builder, const std::string& prefix) {
  builder.norm(Role::kNorm, Role::kNormBias, prefix + builder.names().norm);
  builder.stash_of_stream("x", builder.hidden(), StashClass::kInput);
  builder.multiplied_of_stream("norm1", builder.hidden(), kRemade).for_weights =
      ForWeights::kGathered;
  builder.stash_of_stream("norm1_scale", builder.norm_scales(), kRemade);
}

// From `attended`, what attention gives, back to the stream.
void add_output(LayerBuilder& builder, const std::string& prefix, std::int64_t attended) {
  const ParameterNames& names = builder.names();
  builder.matrix(Role::kOutput, prefix + names.output, builder.hidden(), attended,
                 Init::kResidualNormal);
  if (builder.decoder().output_bias)
    builder.bias(Role::kOutputBias, prefix + names.output, builder.hidden());
  if (!names.output_norm.empty())
    builder.norm(Role::kOutputNorm, Role::kOutputNormBias, prefix + names.output_norm);
  builder.multiplied("attention", attended);
  builder.stash("log_sum_exp", builder.config().num_attention_heads);
  if (builder.decoder().norms_after) {
    builder.stash_of_stream("output", builder.hidden());
    builder.stash_of_stream("output_scale", builder.norm_scales(), kRemade);
  }
  builder.matmul("output", attended, builder.hidden());
}

// Its gradient is made in its place, and rounded elsewhere where products are.
void add_qkv(LayerBuilder& builder, std::int64_t cols) {
  StashTensor& qkv = builder.stash("qkv", cols);
  if (!builder.rounds()) qkv.for_weights = ForWeights::kItself;
}

// The matrices of a run are neighbours, and so are its biases: the engine multiplies a run as one
// matrix.
void add_projections(LayerBuilder& builder, const std::string& prefix, std::int64_t query,
                     std::int64_t key) {
  const ParameterNames& names = builder.names();
  struct Linear {
    std::string name;
    std::int64_t size;
  };
  std::vector<Linear> run = {{names.query, query}, {names.key, key}, {names.value, key}};
  if (!names.query_key_value.empty()) run = {{names.query_key_value, query + 2 * key}};
  for (std::size_t i = 0; i < run.size(); ++i)
    builder.matrix(i == 0 ? Role::kQuery : Role::kKeyValue, prefix + run[i].name, run[i].size,
                   builder.hidden());
  for (std::size_t i = 0; i < run.size() && builder.decoder().attention_bias; ++i)
    builder.bias(i == 0 ? Role::kQueryBias : Role::kKeyValue, prefix + run[i].name, run[i].size);
}

}  // namespace

void add_attention(LayerBuilder& builder, const std::string& prefix) {
  const recipe::Model& config = builder.config();
  const std::int64_t query = config.num_attention_heads * config.head_dim;
  const std::int64_t key = config.num_key_value_heads * config.head_dim;
  add_norm(builder, prefix);
  add_projections(builder, prefix, query, key);
  if (builder.decoder().query_key_norm) {
    builder.scale(Role::kQueryNorm, prefix + builder.names().query_norm, config.head_dim);
    builder.scale(Role::kKeyNorm, prefix + builder.names().key_norm, config.head_dim);
    // Where these two are not kept, qkv holds queries and keys as they were before the norm.
    builder.stash("query_key", query + key, kRemade);
    builder.stash("query_key_scale", config.num_attention_heads + config.num_key_value_heads,
                  kRemade);
  }
  add_qkv(builder, query + 2 * key);
  builder.matmul("qkv", builder.hidden(), query + 2 * key);
  // Scores and weighted values: 2 FLOPs each for every element of a head.
  builder.segment({"attention", 0, 4.0 * static_cast<double>(query)});
  add_output(builder, prefix, query);
}

// Queries from their latent, where there is one; keys and values from theirs; every head has its
// own copy of the rope key in qkv, which is all that attention reads.
void add_latent_attention(LayerBuilder& builder, const std::string& prefix) {
  const LatentSpec& latent = builder.decoder().latent;
  const ParameterNames& names = builder.names();
  const std::int64_t heads = builder.config().num_attention_heads;
  const std::int64_t query = heads * latent.head_dim();
  const std::int64_t value = heads * latent.value_dim;
  const std::int64_t expanded = heads * latent.nope_dim + value;
  const std::int64_t narrow = latent.key_value_rank + latent.rope_dim;
  add_norm(builder, prefix);
  if (latent.query_rank > 0) {
    builder.matrix(Role::kQueryDown, prefix + names.query_down, latent.query_rank,
                   builder.hidden());
    builder.scale(Role::kQueryDownNorm, prefix + names.query_down_norm, latent.query_rank);
    builder.matrix(Role::kQuery, prefix + names.query_up, query, latent.query_rank);
    builder.stash("query_down", latent.query_rank);
    builder.multiplied("query_latent", latent.query_rank, kRemade);
    builder.stash("query_latent_scale", 1, kRemade);
    builder.matmul("query_down", builder.hidden(), latent.query_rank);
    builder.matmul("query", latent.query_rank, query);
  } else {
    builder.matrix(Role::kQuery, prefix + names.query, query, builder.hidden());
    builder.matmul("query", builder.hidden(), query);
  }
  builder.matrix(Role::kKeyValueDown, prefix + names.key_value_down, narrow, builder.hidden());
  builder.scale(Role::kKeyValueDownNorm, prefix + names.key_value_down_norm, latent.key_value_rank);
  builder.matrix(Role::kKeyValueUp, prefix + names.key_value_up, expanded, latent.key_value_rank);
  builder.stash("key_value_down", narrow);
  builder.multiplied("key_value_latent", latent.key_value_rank, kRemade);
  builder.stash("key_value_latent_scale", 1, kRemade);
  add_qkv(builder, 2 * query + value);
  builder.matmul("key_value_down", builder.hidden(), narrow);
  builder.matmul("key_value", latent.key_value_rank, expanded);
  builder.segment({"attention", 0, 2.0 * static_cast<double>(query + value)});
  add_output(builder, prefix, value);
}

}  // namespace ptrain::model
