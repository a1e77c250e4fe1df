// What the executor does with calls of layers: their stash, streams, parameters and gradients.

#include "core/program/keep.h"
#include "core/program/reads.h"
#include "core/program/segments.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/execute/executor.h"

namespace ptrain::execute {
namespace {

using program::Action;
using program::Keep;
using program::Kind;

Keep keep_in(const Action& action, std::string_view attribute) {
  const auto keep = program::keep_named(action.attribute(attribute));
  PT_CHECK(keep.has_value());
  return *keep;
}

}  // namespace

// Without views of parameters where the action reads none: they need not be whole then.
void Executor::set_context(const Action& action, Call& call) {
  if (!program::groups_read(action, architecture_).empty())
    for (const int parameter : spec_of(action).parameters)
      call.parameters.push_back(group_of(parameter).parameter(parameter));
  call.context.emplace(layers::Context{
      batch(action.micro_batch), arena_, call.parameters,
      stashes_.views(action.layer_first, action.micro_batch),
      architecture_.head.is_spread() ? communicators_.vocabulary : communicators_.tensor,
      stashes_.late(action.layer_first, action.micro_batch)});
}

void Executor::run_segment(const Action& action) {
  if (program::begins_call(action)) begin_call(action, calls_.begin(action));
  if (!calls_.resume(action)) return;
  end_call(action, calls_.at(action));
  calls_.end(action);
}

void Executor::begin_call(const Action& action, Call& call) {
  switch (action.kind) {
    case Kind::kForward:
      return begin_forward(action, call);
    case Kind::kRecompute:
      return begin_recompute(action, call);
    default:
      return begin_backward(action, call);
  }
}

void Executor::end_call(const Action& action, Call& call) {
  if (action.kind == Kind::kForward) return end_forward(action, call);
  if (action.kind != Kind::kRecompute) return end_backward(action, call);
}

void Executor::begin_forward(const Action& action, Call& call) {
  const auto kind = spec_of(action).kind;
  const int micro_batch = action.micro_batch;
  stashes_.take(action.layer_first, micro_batch, batch(micro_batch).num_tokens(),
                keep_in(action, "keep"));
  set_context(action, call);
  const std::int64_t rows = stream_rows(micro_batch);
  const bool has_stream = architecture_.has_stream(spec_of(action));
  const bool has_input = kind != model::LayerKind::kEmbedding && has_stream;
  if (has_input) call.input = activations_.take(action.layer_first, micro_batch);
  const Tensor x = has_input ? activations_.view(call.input, rows) : Tensor{};
  if (kind == model::LayerKind::kHead) return begin_head(action, call, x);
  if (has_stream) call.output = activations_.fresh(rows);
  const Tensor y = has_stream ? activations_.view(call.output, rows) : Tensor{};
  call.task.emplace(code_of(action).forward(*call.context, x, y));
}

// With a stash the head only keeps its input: loss and gradient are made together in its backward.
void Executor::begin_head(const Action& action, Call& call, const Tensor& x) {
  const layers::Layer& head = code_of(action);
  if (keep_in(action, "keep") != Keep::kNone) {
    call.task.emplace(head.forward(*call.context, x, Tensor{}));
  } else if (logits_position_ >= 0) {
    call.output = Buffer(arena_, program::MemoryClass::kTemporary,
                         vocabulary_ * size_of(architecture_.dtype));
    call.task.emplace(head.logits(*call.context, x, logits_position_, logits_row(call)));
  } else {
    call.task.emplace(head.loss(*call.context, x, sums_));
  }
}

Tensor Executor::logits_row(const Call& call) const {
  return contiguous(call.output.data(), architecture_.dtype, 1, vocabulary_);
}

void Executor::end_forward(const Action& action, Call& call) {
  if (!call.output) return;
  if (spec_of(action).kind != model::LayerKind::kHead)
    return activations_.put(action.layer_first + 1, action.micro_batch, std::move(call.output));
  device::synchronize();
  const Tensor row = logits_row(call);
  dispatch(row.dtype, [&](auto zero) {
    const auto* values = row.as<decltype(zero)>();
    logits_.assign(values, values + row.cols);
  });
}

void Executor::begin_recompute(const Action& action, Call& call) {
  stashes_.complete(action.layer_first, action.micro_batch, batch(action.micro_batch).num_tokens());
  set_context(action, call);
  if (keep_in(action, "from") == Keep::kInput) {
    call.task.emplace(code_of(action).recompute(*call.context));
  } else {
    call.task.emplace(code_of(action).remake(*call.context));
  }
}

void Executor::begin_backward(const Action& action, Call& call) {
  const auto& spec = spec_of(action);
  for (const int group : spec.groups) sharing_->begin_write(group);
  call.targets = targets_.of(spec);
  const bool lost = planted(Bug::kTiedGradientLost) && architecture_.config.tie_word_embeddings &&
                    spec.kind == model::LayerKind::kEmbedding;
  if (lost || planted(Bug::kOverwrittenGradient))
    for (auto& target : call.targets) target.accumulate = false;
  set_context(action, call);
  const Tensor dy =
      architecture_.has_stream(spec)
          ? gradients_.get(action.layer_first, action.micro_batch, stream_rows(action.micro_batch))
          : Tensor();
  call.task.emplace(code_of(action).backward_input(*call.context, call.targets, dy, call.products,
                                                   call.scratch, sums_));
}

void Executor::end_backward(const Action& action, Call& call) {
  const auto& spec = spec_of(action);
  const int layer = action.layer_first, micro_batch = action.micro_batch;
  if (architecture_.has_stream(spec)) {
    Buffer gradient = gradients_.take(layer, micro_batch);
    if (spec.kind != model::LayerKind::kEmbedding)
      gradients_.put(layer - 1, micro_batch, std::move(gradient));
  }
  if (action.kind == Kind::kBackwardInput && spec.kind == model::LayerKind::kBlock) {
    if (planted(Bug::kStashFreedAtInput)) {
      stashes_.give(layer, micro_batch);
    } else {
      stashes_.keep_for_weights(layer, micro_batch, call.products);
    }
    return queued_.put(spec, micro_batch, call.targets, std::move(call.products),
                       std::move(call.scratch), targets_);
  }
  layers::backward_weight(call.products);
  targets_.written(spec);
  stashes_.give(planted(Bug::kStashKept) ? layer + 1 : layer, micro_batch);
}

void Executor::backward_weight(const Action& action) {
  for (const int group : spec_of(action).groups) sharing_->begin_write(group);
  queued_.multiply(action.layer_first, action.micro_batch, targets_);
  stashes_.give(action.layer_first, action.micro_batch);
}

}  // namespace ptrain::execute
