#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/model/architecture.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"
#include "engine/data/batch.h"
#include "engine/layers/router_sums.h"
#include "engine/layers/task.h"

namespace ptrain::layers {

// Where a parameter's gradient goes: overwrite at the first write of a step, add afterwards.
struct GradientTarget {
  Tensor tensor;
  bool accumulate = false;
};

// dW += or = dy^T x for one linear; run by backward_weight. Views into stash or scratch that stay
// alive until then.
struct WeightProduct {
  Tensor x;               // [tokens, in]
  Tensor dy;              // [tokens, out]
  GradientTarget target;  // [out, in]
};

// Sums over target tokens; never means.
struct LossSums {
  double loss = 0;
  std::int64_t num_targets = 0;
  RouterSums routers = {};
};

// Stash whose rows are known only when other ranks have told how many come (StashRows::kExperts).
class LateStash {
 public:
  virtual ~LateStash() = default;
  // [rows, elements_per_token] for entry `index`; empty where it is not kept.
  virtual Tensor take(std::size_t index, std::int64_t rows) = 0;
};

// What a layer works with in one call. T = batch.num_tokens(), H = hidden size; S =
// Architecture::stream_rows(T): the tokens of the residual stream that this rank holds.
struct Context {
  const data::MicroBatch& batch;
  Arena& arena;                        // scratch is taken as MemoryClass::kTemporary
  std::span<const Tensor> parameters;  // views in LayerSpec::parameters order: [out, in] or [1, n]
  std::span<const Tensor>
      stash;  // views in LayerSpec::stash order, [rows_of, elements_per_token]; empty: keep nothing
  // The ranks that share the head, where there are others: for the small values that it combines
  // within a segment. All else is exchanged between segments.
  comm::Communicator* head = nullptr;
  LateStash* late_stash = nullptr;  // null: the rest is not kept
};

// A layer has explicit backward and no state: all it needs comes in, all it keeps is the declared
// stash. Calls are tasks (task.h), which do nothing until they are run; context and references must
// live until then.
class Layer {
 public:
  virtual ~Layer() = default;

  // x -> y, both [S, H]. Embedding: x is empty. Head: x only; keeps its stash (the loss is made in
  // backward). Of either all these are empty on ranks that only share its matrix
  // (model::VocabularyPlace), so is dy. Of the stash, entries that are not empty are written; the
  // input's is a copy of x.
  virtual Task forward(const Context& context, Tensor x, Tensor y) const = 0;

  // Both leave the whole stash with the same bits as a forward that keeps all. From the input:
  virtual Task recompute(const Context& context) const = 0;
  // From the entries that a forward wrote when only those of the class kRemade were empty:
  virtual Task remake(const Context& context) const = 0;

  // dy [S, H] becomes dx in place (embedding: consumed). Small gradients (norms, embedding rows)
  // are made at once, linears are queued in `products` as pairs that stay valid until the context's
  // stash and `scratch` are freed. gradients: in LayerSpec::parameters order. The head ignores dy's
  // content and makes it from the loss.
  virtual Task backward_input(const Context& context, std::span<const GradientTarget> gradients,
                              Tensor dy, std::vector<WeightProduct>& products,
                              std::vector<Buffer>& scratch, LossSums& sums) const = 0;

  // Head only: loss sums without gradients (validation).
  virtual Task loss(const Context& context, Tensor x, LossSums& sums) const;
  // Head only: logits [n, vocabulary of the whole model] of n tokens of the batch, from `first` on
  // (sampling).
  virtual Task logits(const Context& context, Tensor x, std::int64_t first, Tensor logits) const;
};

// Multiplies the queued pairs into their gradients.
void backward_weight(std::span<const WeightProduct> products);

// The code for each LayerSpec of an architecture, in its order; null for those that other ranks
// hold.
std::vector<std::unique_ptr<Layer>> make_layers(const model::Architecture& architecture);

// Tokens of the model whose part this is: the columns of logits().
std::int64_t vocabulary_of(const model::Architecture& architecture);

}  // namespace ptrain::layers
