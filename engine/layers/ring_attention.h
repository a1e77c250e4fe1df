#pragma once

#include <vector>

#include "engine/kernels/attention.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

// Attention among the ranks of a ring, which hold pieces of documents end to end
// (MicroBatch::ring_pieces). Keys and values go around, one rank a step, and each rank takes what
// its queries see of them into its output, while the next ones are on their way. A rank alone
// attends to its pieces, each by itself.
class RingAttention {
 public:
  RingAttention(const kernels::AttentionShape& shape, model::AxisPlace ring)
      : shape_(shape), ring_(ring) {}

  // As kernels::attention, for all pieces.
  Task forward(const Context& context, Tensor qkv, Tensor output, Tensor log_sum_exp) const;
  // As kernels::attention_backward: qkv becomes its gradient.
  Task backward(const Context& context, kernels::AttentionGradient in, Tensor qkv) const;

 private:
  // Where a query's piece and that of a key before it lie: first rows and sizes.
  struct Pair;
  // f(pair) for the own pieces and those of another rank that lie before them in their document.
  template <class F>
  void each_before(const Context& context, int other, const F& f) const;
  // f(first row, rows) of each own piece.
  template <class F>
  void each_own(const Context& context, const F& f) const;
  // Whose keys are here after so many steps.
  int owner_after(int step) const { return (ring_.rank + ring_.size - step) % ring_.size; }
  // What a rank sends on, and where what comes is put. `gathered`: added to what is sent, once the
  // shift before has brought it; empty: nothing is.
  struct Travelling {
    Tensor here, next, gathered = {};
  };
  Exchange shift(std::vector<Travelling> all) const;
  // Of the shift before.
  static Exchange arrival() { return {ExchangeKind::kArrival, ExchangeAxis::kRing, {}}; }
  void take_in(const Context& context, int owner, const Tensor& query, const Tensor& key_value,
               const Tensor& output, const Tensor& log_sum_exp) const;

  // What own_backward() is for the own pieces, backward_of() is for those of another rank: the
  // gradients of the queries and of its keys and values are added to.
  void own_backward(const Context& context, const kernels::AttentionGradient& in,
                    const Tensor& qkv) const;
  struct Passing {
    Tensor query, key_value;
  };
  void backward_of(const Context& context, int owner, const kernels::AttentionGradient& in,
                   const Passing& from, const Passing& gradients) const;

  kernels::AttentionShape shape_;
  model::AxisPlace ring_;
};

}  // namespace ptrain::layers
