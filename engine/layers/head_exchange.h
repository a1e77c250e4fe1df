#pragma once

#include "engine/kernels/attention.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

// How ulysses ranks share heads: around attention each gives its tokens' columns for the other
// ranks' heads, and gets those of its own heads for all their tokens. Where there are fewer heads
// of keys and values than ranks, neighbours attend with the same one.
class HeadExchange {
 public:
  HeadExchange(const kernels::AttentionShape& whole, model::AxisPlace ranks);

  bool alone() const { return ranks_.size == 1; }
  int num_ranks() const { return ranks_.size; }
  // Of the own heads.
  const kernels::AttentionShape& part() const { return part_; }

  // Between the own tokens with all heads, [T, ...], and one block of T rows a rank with its heads,
  // end to end.
  void split_qkv(const Tensor& qkv, const Tensor& blocks) const;
  void split_output(const Tensor& output, const Tensor& blocks) const;
  void join_output(const Tensor& blocks, const Tensor& output) const;
  // Gradients of a head of keys and values that several ranks had are added.
  void join_qkv_gradients(const Tensor& blocks, const Tensor& qkv) const;

  // Block r of `sent` goes to rank r; block r of `received` comes from it, and with it its tokens.
  Exchange all_to_all(Tensor sent, Tensor received) const;

 private:
  // Columns of a rank's heads in those of all.
  struct Columns {
    Tensor query, key, value;
  };
  Columns columns_of(const Tensor& qkv, int rank) const;
  Columns columns_of_part(const Tensor& block) const;
  Tensor output_of(const Tensor& output, int rank) const {
    return output.columns(rank * part_.output_cols(), part_.output_cols());
  }
  Tensor block(const Tensor& blocks, int rank) const;

  kernels::AttentionShape whole_, part_;
  model::AxisPlace ranks_;
};

}  // namespace ptrain::layers
