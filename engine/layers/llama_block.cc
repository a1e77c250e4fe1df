#include <algorithm>

#include "engine/base/planted.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rms_norm.h"
#include "engine/kernels/swiglu.h"
#include "engine/layers/layers.h"
#include "engine/layers/linear.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

enum Parameter : std::size_t {
  kInputNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kPostNorm,
  kGate,
  kUp,
  kDown
};
enum Stash : std::size_t {
  kX,
  kNorm1,
  kNorm1Scale,
  kQkv,
  kAttention,
  kLogSumExp,
  kX2,
  kNorm2,
  kNorm2Scale,
  kGateUp,
  kProduct
};

// What the block keeps, by name. qkv: after rotary.
struct Activations {
  Tensor x, norm1, norm1_scale, qkv, attention, log_sum_exp;
  Tensor x2, norm2, norm2_scale, gate_up, product;
};

// x2 = x + output(attention(qkv(norm1(x)))); y = x2 + down(swiglu(gate_up(norm2(x2)))).
class LlamaBlock final : public Layer {
 public:
  LlamaBlock(const model::Architecture& architecture,
             std::shared_ptr<const kernels::RotaryTable> rotary)
      : config_(architecture.config),
        dtype_(architecture.dtype),
        rotary_(std::move(rotary)),
        shape_{config_.num_attention_heads, config_.num_key_value_heads, config_.head_dim} {}

  void forward(const Context& context, const Tensor& x, const Tensor& y) const override {
    Workspace work(context, dtype_);
    if (work.keeps(kX)) copy_tensor(x, context.stash[kX]);
    const Activations a = activations(work, x);
    compute(context, a);
    copy_tensor(a.x2, y);
    kernels::matmul(a.product, context.parameters[kDown], y,
                    {.transpose_b = true, .accumulate = true});
  }

  void recompute(const Context& context) const override {
    Workspace work(context, dtype_);
    const Activations a = activations(work, context.stash[kX]);
    compute(context, a);
    if (planted(Bug::kRecomputeWithoutTurn)) turn(context, a.qkv, kernels::Turn::kBack);
  }

  void backward_input(const Context& context, std::span<const GradientTarget> gradients,
                      const Tensor& dy, std::vector<WeightProduct>& products,
                      std::vector<Buffer>& scratch, LossSums&) const override {
    Workspace work(context, dtype_);
    const Activations a = activations(work, context.stash[kX]);
    const auto kept = [&] {
      return take_scratch(context.arena, dtype_, dy.rows, dy.cols, scratch);
    };
    const Tensor dy_kept = kept(), dx2 = kept();
    copy_tensor(dy, dy_kept);
    backward_mlp(context, a, gradients, dy_kept, dx2);
    backward_attention(context, a, gradients, dx2, dy);
    queue_weight_gradient(a.product, dy_kept, gradients.subspan(kDown, 1), products);
    queue_weight_gradient(a.norm2, a.gate_up, gradients.subspan(kGate, 2), products);
    queue_weight_gradient(a.attention, dx2, gradients.subspan(kOutput, 1), products);
    queue_weight_gradient(a.norm1, a.qkv, gradients.subspan(kQuery, 3), products);
  }

 private:
  Activations activations(Workspace& work, const Tensor& x) const {
    const std::int64_t hidden = config_.hidden_size, ffn = config_.intermediate_size;
    return {.x = x,
            .norm1 = work.stash_or_scratch(kNorm1, hidden),
            .norm1_scale = work.stash_or_scratch(kNorm1Scale, 1),
            .qkv = work.stash_or_scratch(kQkv, shape_.qkv_cols()),
            .attention = work.stash_or_scratch(kAttention, shape_.query_cols()),
            .log_sum_exp = work.stash_or_scratch(kLogSumExp, shape_.num_heads),
            .x2 = work.stash_or_scratch(kX2, hidden),
            .norm2 = work.stash_or_scratch(kNorm2, hidden),
            .norm2_scale = work.stash_or_scratch(kNorm2Scale, 1),
            .gate_up = work.stash_or_scratch(kGateUp, 2 * ffn),
            .product = work.stash_or_scratch(kProduct, ffn)};
  }

  // Everything but y.
  void compute(const Context& context, const Activations& a) const {
    const auto& parameters = context.parameters;
    kernels::rms_norm(a.x, parameters[kInputNorm], config_.rms_norm_eps, a.norm1, a.norm1_scale);
    linear(a.norm1, parameters.subspan(kQuery, 3), a.qkv);
    turn(context, a.qkv, kernels::Turn::kForward);
    for (const data::DocumentSpan& span : context.batch.documents)
      kernels::attention(shape_, rows_of(a.qkv, span), rows_of(a.attention, span),
                         rows_of(a.log_sum_exp, span), context.arena);
    copy_tensor(a.x, a.x2);
    if (!planted(Bug::kAttentionZeroed))
      kernels::matmul(a.attention, parameters[kOutput], a.x2,
                      {.transpose_b = true, .accumulate = true});
    kernels::rms_norm(a.x2, parameters[kPostNorm], config_.rms_norm_eps, a.norm2, a.norm2_scale);
    linear(a.norm2, parameters.subspan(kGate, 2), a.gate_up);
    kernels::swiglu(a.gate_up, a.product);
  }

  // dx2 = dy + what comes back through the MLP; gate_up becomes its gradient.
  void backward_mlp(const Context& context, const Activations& a,
                    std::span<const GradientTarget> gradients, const Tensor& dy,
                    const Tensor& dx2) const {
    Workspace work(context, dtype_);
    const Tensor dproduct = work.scratch(a.product.cols), dnorm = work.scratch(dy.cols);
    kernels::matmul(dy, context.parameters[kDown], dproduct);
    kernels::swiglu_backward(a.gate_up, dproduct);
    linear_input_gradient(a.gate_up, context.parameters.subspan(kGate, 2), dnorm);
    begin_sum(gradients[kPostNorm]);
    kernels::rms_norm_backward({a.x2, a.norm2_scale, context.parameters[kPostNorm], dnorm, dy}, dx2,
                               gradients[kPostNorm].tensor);
  }

  // dx = dx2 + what comes back through attention; qkv becomes its gradient.
  void backward_attention(const Context& context, const Activations& a,
                          std::span<const GradientTarget> gradients, const Tensor& dx2,
                          const Tensor& dx) const {
    Workspace work(context, dtype_);
    const Tensor dattention = work.scratch(a.attention.cols), dnorm = work.scratch(dx.cols);
    kernels::matmul(dx2, context.parameters[kOutput], dattention);
    for (const data::DocumentSpan& span : context.batch.documents)
      kernels::attention_backward(
          shape_,
          {rows_of(a.attention, span), rows_of(a.log_sum_exp, span), rows_of(dattention, span)},
          rows_of(a.qkv, span), context.arena);
    turn(context, a.qkv, kernels::Turn::kBack);
    linear_input_gradient(a.qkv, context.parameters.subspan(kQuery, 3), dnorm);
    begin_sum(gradients[kInputNorm]);
    kernels::rms_norm_backward({a.x, a.norm1_scale, context.parameters[kInputNorm], dnorm, dx2}, dx,
                               gradients[kInputNorm].tensor);
  }

  // Queries and keys, which lie side by side.
  void turn(const Context& context, const Tensor& qkv, kernels::Turn turn) const {
    const auto& positions = context.batch.positions;
    const std::int32_t last = positions.empty() ? 0 : *std::ranges::max_element(positions);
    const Tensor turned =
        qkv.columns(0, shape_.query_cols() + shape_.num_kv_heads * shape_.head_dim);
    kernels::rotate(*rotary_->angles(std::int64_t{last} + 1), positions, turned, turn);
  }

  static Tensor rows_of(const Tensor& tensor, const data::DocumentSpan& span) {
    const std::int64_t begin = planted(Bug::kMaskLeak) ? 0 : span.begin;
    return tensor.row_range(begin, span.end - begin);
  }

  recipe::Model config_;
  DType dtype_;
  std::shared_ptr<const kernels::RotaryTable> rotary_;
  kernels::AttentionShape shape_;
};

}  // namespace

std::unique_ptr<Layer> make_llama_block(const model::Architecture& architecture,
                                        std::shared_ptr<const kernels::RotaryTable> rotary) {
  return std::make_unique<LlamaBlock>(architecture, std::move(rotary));
}

}  // namespace ptrain::layers
