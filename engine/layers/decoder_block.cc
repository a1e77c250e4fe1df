#include "engine/base/planted.h"
#include "engine/layers/attention_part.h"
#include "engine/layers/layers.h"
#include "engine/layers/mlp_part.h"
#include "engine/layers/residual_part.h"

namespace ptrain::layers {
namespace {

using model::Role;

// What the block keeps.
struct Activations {
  Tensor x, norm1, norm1_scale;
  AttentionPart::Kept attention;
  ResidualPart::Kept output;
  Tensor x2, norm2, norm2_scale;
  MlpPart::Kept mlp;
  ResidualPart::Kept down;
};

// x2 = x + output(attention(norm1(x))); y = x2 + down(mlp(norm2(x2))): core/model/decoder.h.
class DecoderBlock final : public Layer {
 public:
  DecoderBlock(const model::Architecture& architecture, const model::LayerSpec& spec,
               std::shared_ptr<const kernels::RotaryTable> rotary)
      : DecoderBlock(architecture, spec, Places(architecture, spec), std::move(rotary)) {}

  void forward(const Context& context, const Tensor& x, const Tensor& y) const override {
    Workspace work(context, dtype_);
    if (work.keeps(stash_.x)) copy_tensor(x, context.stash[stash_.x]);
    const Activations a = activations(work, x);
    compute(context, a);
    down_.forward(context, a.x2, a.mlp.product, a.down, y);
  }

  void recompute(const Context& context) const override {
    Workspace work(context, dtype_);
    const Activations a = activations(work, context.stash[stash_.x]);
    compute(context, a);
    if (down_.has_norm()) {
      const Tensor y = work.scratch(hidden_);
      down_.forward(context, a.x2, a.mlp.product, a.down, y);
    }
    if (planted(Bug::kRecomputeWithoutTurn))
      attention_.turn(context, a.attention.qkv, kernels::Turn::kBack);
  }

  // Each from what is kept before it, in the order of forward.
  void remake(const Context& context) const override {
    Workspace work(context, dtype_);
    const Activations a = activations(work, context.stash[stash_.x]);
    norm1_.forward(context, a.x, a.norm1, a.norm1_scale);
    attention_.remake(context, a.attention);
    output_.remake(context, a.x, a.output, a.x2);
    norm2_.forward(context, a.x2, a.norm2, a.norm2_scale);
    mlp_.remake(a.mlp);
  }

  void backward_input(const Context& context, std::span<const GradientTarget> gradients,
                      const Tensor& dy, std::vector<WeightProduct>& products,
                      std::vector<Buffer>& scratch, LossSums&) const override {
    Workspace work(context, dtype_);
    Activations a = activations(work, context.stash[stash_.x]);
    const auto kept = [&](DType dtype) {
      return take_scratch(context.arena, dtype, dy.rows, dy.cols, scratch);
    };
    // Queued products read what dy holds now, or what the norm makes of it.
    const Tensor ddown = kept(compute_), dx2 = kept(dtype_);
    down_.through_norm(context, gradients, a.down, dy, ddown);
    backward_mlp(context, a, gradients, {dy, ddown}, dx2);
    const Tensor doutput =
        output_.has_norm() ? kept(compute_) : itself_or_room(dx2, compute_, context.arena, scratch);
    output_.through_norm(context, gradients, a.output, dx2, doutput);
    a.attention.dqkv = itself_or_room(a.attention.qkv, compute_, context.arena, scratch);
    backward_attention(context, a, gradients, {dx2, doutput}, dy);
    down_.queue(a.mlp.product, ddown, gradients, products);
    mlp_.queue(a.norm2, a.mlp, gradients, products);
    output_.queue(a.attention.attention, doutput, gradients, products);
    attention_.queue(a.norm1, a.attention, gradients, products);
  }

 private:
  DecoderBlock(const model::Architecture& architecture, const model::LayerSpec& spec,
               const Places& places, std::shared_ptr<const kernels::RotaryTable> rotary)
      : dtype_(architecture.dtype),
        compute_(architecture.compute_dtype),
        hidden_(architecture.config.hidden_size),
        norm1_(architecture.decoder, places, Role::kNorm, Role::kNormBias),
        attention_(architecture, spec, std::move(rotary)),
        output_(architecture, spec,
                {Role::kOutput, Role::kOutputBias, Role::kOutputNorm, Role::kOutputNormBias},
                "output"),
        norm2_(architecture.decoder, places, Role::kMlpNorm, Role::kMlpNormBias),
        mlp_(architecture, spec),
        down_(architecture, spec,
              {Role::kDown, Role::kDownBias, Role::kDownNorm, Role::kDownNormBias}, "down"),
        stash_{places.stash("x"),  places.stash("norm1"), places.stash("norm1_scale"),
               places.stash("x2"), places.stash("norm2"), places.stash("norm2_scale")} {}

  Activations activations(Workspace& work, const Tensor& x) const {
    const std::int64_t statistics = norm1_.statistics_cols();
    return {.x = x,
            .norm1 = work.stash_or_scratch(stash_.norm1, hidden_, compute_),
            .norm1_scale = work.stash_or_scratch(stash_.norm1_scale, statistics),
            .attention = attention_.kept(work),
            .output = output_.kept(work),
            .x2 = work.stash_or_scratch(stash_.x2, hidden_),
            .norm2 = work.stash_or_scratch(stash_.norm2, hidden_, compute_),
            .norm2_scale = work.stash_or_scratch(stash_.norm2_scale, statistics),
            .mlp = mlp_.kept(work),
            .down = down_.kept(work)};
  }

  // Everything but y and what is kept on the way there.
  void compute(const Context& context, const Activations& a) const {
    norm1_.forward(context, a.x, a.norm1, a.norm1_scale);
    attention_.forward(context, a.norm1, a.attention);
    if (planted(Bug::kAttentionZeroed)) {
      copy_tensor(a.x, a.x2);
    } else {
      output_.forward(context, a.x, a.attention.attention, a.output, a.x2);
    }
    norm2_.forward(context, a.x2, a.norm2, a.norm2_scale);
    mlp_.forward(context, a.norm2, a.mlp);
  }

  // Gradients of what a part gave: as it stands in the residual stream, and before its norm.
  struct Edge {
    Tensor stream, projected;
  };

  // dx2 = dy + what comes back through the MLP.
  void backward_mlp(const Context& context, const Activations& a,
                    std::span<const GradientTarget> gradients, const Edge& dy,
                    const Tensor& dx2) const {
    Workspace work(context, dtype_);
    const Tensor dproduct = work.scratch(a.mlp.product.cols), dnorm = work.scratch(hidden_);
    down_.backward(context, gradients, dy.projected, dproduct);
    mlp_.backward(context, gradients, a.mlp, dproduct, dnorm);
    norm2_.backward(context, gradients, {a.x2, a.norm2_scale, dnorm, dy.stream}, dx2);
  }

  // dx = dx2 + what comes back through attention.
  void backward_attention(const Context& context, const Activations& a,
                          std::span<const GradientTarget> gradients, const Edge& dx2,
                          const Tensor& dx) const {
    Workspace work(context, dtype_);
    const Tensor dattention = work.scratch(a.attention.attention.cols);
    const Tensor dnorm = work.scratch(hidden_);
    output_.backward(context, gradients, dx2.projected, dattention);
    attention_.backward(context, gradients, a.attention, dattention, dnorm);
    norm1_.backward(context, gradients, {a.x, a.norm1_scale, dnorm, dx2.stream}, dx);
  }

  DType dtype_, compute_;
  std::int64_t hidden_;
  Norm norm1_;
  AttentionPart attention_;
  ResidualPart output_;
  Norm norm2_;
  MlpPart mlp_;
  ResidualPart down_;
  struct {
    std::size_t x, norm1, norm1_scale, x2, norm2, norm2_scale;
  } stash_;
};

}  // namespace

std::unique_ptr<Layer> make_decoder_block(const model::Architecture& architecture,
                                          const model::LayerSpec& spec,
                                          std::shared_ptr<const kernels::RotaryTable> rotary) {
  return std::make_unique<DecoderBlock>(architecture, spec, std::move(rotary));
}

}  // namespace ptrain::layers
