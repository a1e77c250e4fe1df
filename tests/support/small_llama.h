#pragma once

#include "core/model/architecture.h"

namespace ptrain::support {

// H 8, 2 heads of 4 with 1 key-value head, F 12, vocabulary 64. Elements by hand: embedding 512;
// a block 496 = norms 16 + q 64 + k 32 + v 32 + o 64 + gate, up, down 96 each, stash 96 a token;
// head 512 + norm 8 (tied: the norm alone), stash 8 a token.
inline model::Architecture small_llama(std::int64_t num_blocks, bool tied = false,
                                       std::int64_t vocab_size = 64) {
  recipe::Model config;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = num_blocks;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.vocab_size = vocab_size;
  config.tie_word_embeddings = tied;
  return *model::make_architecture(config, DType::kFloat32);
}

}  // namespace ptrain::support
