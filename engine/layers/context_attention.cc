#include "engine/layers/context_attention.h"

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

using kernels::AttentionGradient;

Tensor rows_of(const Tensor& tensor, const data::DocumentSpan& span) {
  const std::int64_t begin = planted(Bug::kMaskLeak) ? 0 : span.begin;
  return tensor.row_range(begin, span.end - begin);
}

ContextAttention::ContextAttention(const model::Architecture& architecture,
                                   const kernels::AttentionShape& shape)
    : shape_(shape),
      is_one_ring_rank_(architecture.ring.size == 1),
      heads_(shape, architecture.ulysses),
      ring_(heads_.part(), architecture.ring) {}

Task ContextAttention::forward(const Context& context, Tensor qkv, Tensor output,
                               Tensor log_sum_exp) const {
  if (!heads_.alone()) {
    co_await forward_of_heads(context, qkv, output, log_sum_exp);
  } else if (!is_one_ring_rank_) {
    co_await ring_.forward(context, qkv, output, log_sum_exp);
  } else {
    for (const data::DocumentSpan& span : context.batch.documents)
      kernels::attention(shape_, rows_of(qkv, span), rows_of(output, span),
                         rows_of(log_sum_exp, span), context.arena);
  }
}

Task ContextAttention::backward(const Context& context, AttentionGradient in, Tensor qkv) const {
  if (!heads_.alone()) {
    co_await backward_of_heads(context, in, qkv);
  } else if (!is_one_ring_rank_) {
    co_await ring_.backward(context, in, qkv);
  } else {
    for (const data::DocumentSpan& span : context.batch.documents)
      kernels::attention_backward(
          shape_,
          {rows_of(in.output, span), rows_of(in.log_sum_exp, span), rows_of(in.doutput, span)},
          rows_of(qkv, span), context.arena);
  }
}

// One block of rows a rank.
Tensor ContextAttention::blocks(const Context& context, const Tensor& like, std::int64_t cols,
                                std::vector<Buffer>& buffers) const {
  return take_scratch(context.arena, like.dtype, like.rows * heads_.num_ranks(), cols, buffers);
}

// More tokens and fewer heads in the same memory.
Tensor ContextAttention::sums_of_heads(const Tensor& log_sum_exp) const {
  PT_CHECK(log_sum_exp.stride == log_sum_exp.cols);
  return contiguous(log_sum_exp.data, log_sum_exp.dtype, log_sum_exp.rows * heads_.num_ranks(),
                    heads_.part().num_heads);
}

Task ContextAttention::forward_of_heads(const Context& context, Tensor qkv, Tensor output,
                                        Tensor log_sum_exp) const {
  const kernels::AttentionShape& part = heads_.part();
  std::vector<Buffer> inputs, outputs, received;
  const Tensor own_qkv = blocks(context, qkv, part.qkv_cols(), inputs);
  {
    std::vector<Buffer> sent;
    const Tensor split = blocks(context, qkv, part.qkv_cols(), sent);
    heads_.split_qkv(qkv, split);
    co_await exchange(heads_.all_to_all(split, own_qkv));
  }
  const Tensor own_output = blocks(context, qkv, part.output_cols(), outputs);
  co_await ring_.forward(context, own_qkv, own_output, sums_of_heads(log_sum_exp));
  inputs.clear();
  const Tensor all_heads = blocks(context, qkv, part.output_cols(), received);
  co_await exchange(heads_.all_to_all(own_output, all_heads));
  heads_.join_output(all_heads, output);
}

// Queries, keys, values, outputs and their gradients travel side by side.
Task ContextAttention::backward_of_heads(const Context& context, AttentionGradient in,
                                         Tensor qkv) const {
  const kernels::AttentionShape& part = heads_.part();
  const std::int64_t qkv_cols = part.qkv_cols(), output_cols = part.output_cols();
  std::vector<Buffer> inputs, gradients;
  const Tensor own = blocks(context, qkv, qkv_cols + 2 * output_cols, inputs);
  {
    std::vector<Buffer> sent;
    const Tensor split = blocks(context, qkv, own.cols, sent);
    heads_.split_qkv(qkv, split.columns(0, qkv_cols));
    heads_.split_output(in.output, split.columns(qkv_cols, output_cols));
    heads_.split_output(in.doutput, split.columns(qkv_cols + output_cols, output_cols));
    co_await exchange(heads_.all_to_all(split, own));
  }
  const AttentionGradient of_heads{own.columns(qkv_cols, output_cols),
                                   sums_of_heads(in.log_sum_exp),
                                   own.columns(qkv_cols + output_cols, output_cols)};
  co_await ring_.backward(context, of_heads, own.columns(0, qkv_cols));
  const Tensor own_gradient = blocks(context, qkv, qkv_cols, gradients);
  copy_tensor(own.columns(0, qkv_cols), own_gradient);
  inputs.clear();
  const Tensor all_heads = blocks(context, qkv, qkv_cols, inputs);
  co_await exchange(heads_.all_to_all(own_gradient, all_heads));
  heads_.join_qkv_gradients(all_heads, qkv);
}

}  // namespace ptrain::layers
