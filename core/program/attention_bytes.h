#pragma once

#include <cstdint>

namespace ptrain::program {

// Bytes that a call of attention (engine/kernels/attention.h, attention_before.h) takes as scratch,
// of one document or piece of it.
struct AttentionBytes {
  std::int64_t wide;  // of a number
  std::int64_t head_dim, value_dim;
  // Products may be of pairs of bfloat16. Whether they are depends on the processor, so this is the
  // most of both.
  bool pairs;

  // Of n tokens among themselves.
  std::int64_t inside(std::int64_t n) const;
  std::int64_t inside_backward(std::int64_t n) const;
  // Between queries and the keys of a piece before them.
  std::int64_t before(std::int64_t queries, std::int64_t keys) const;
  std::int64_t before_backward(std::int64_t queries, std::int64_t keys) const;

 private:
  std::int64_t scores(std::int64_t queries, std::int64_t keys) const;
  std::int64_t pairs_forward(std::int64_t keys) const;
  std::int64_t pairs_backward(std::int64_t keys) const;
};

}  // namespace ptrain::program
