#include "engine/base/planted.h"
#include "engine/layers/attention_part.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/latent_part.h"
#include "engine/layers/layers.h"
#include "engine/layers/moe_part.h"
#include "engine/layers/residual_part.h"

namespace ptrain::layers {
namespace {

using model::Role;

// x2 = x + output(attention(norm1(x))); y = feed_forward(x2, norm2(x2)): core/model/decoder.h. The
// exchanges are those of core/model/exchanges.cc, in its order. Attention: AttentionPart or
// LatentPart. Mlp: FeedForward or MoePart.
template <class Attention, class Mlp>
class DecoderBlock final : public Layer {
 public:
  DecoderBlock(const model::Architecture& architecture, const model::LayerSpec& spec,
               std::shared_ptr<const kernels::RotaryTable> rotary)
      : DecoderBlock(architecture, spec, Places(architecture, spec), std::move(rotary)) {}

  Task forward(const Context& context, Tensor x, Tensor y) const override {
    Workspace work(context, dtype_, share_);
    if (work.keeps(stash_.x)) copy_tensor(x, context.stash[stash_.x]);
    const Activations a = activations(work, x);
    co_await compute(context, a);
    co_await mlp_.forward(context, a.x2, a.norm2, a.mlp, y);
  }

  Task recompute(const Context& context) const override {
    Workspace work(context, dtype_, share_);
    const Activations a = activations(work, context.stash[stash_.x]);
    co_await compute(context, a);
    co_await mlp_.recompute(context, a.x2, a.norm2, a.mlp);
    if (planted(Bug::kRecomputeWithoutTurn))
      attention_.turn(context, a.attention.qkv, kernels::Turn::kBack);
  }

  // Each from what is kept before it, in the order of forward.
  Task remake(const Context& context) const override {
    Workspace work(context, dtype_, share_);
    const Activations a = activations(work, context.stash[stash_.x]);
    norm1_.forward(context, a.x, a.norm1, a.norm1_scale);
    attention_.remake(context, a.attention);
    output_.remake(context, a.x, a.output, a.x2);
    norm2_.forward(context, a.x2, a.norm2, a.norm2_scale);
    mlp_.remake(context, a.mlp);
    co_return;
  }

  Task backward_input(const Context& context, std::span<const GradientTarget> gradients, Tensor dy,
                      std::vector<WeightProduct>& products, std::vector<Buffer>& scratch,
                      LossSums& sums) const override {
    Workspace work(context, dtype_, share_);
    Activations a = activations(work, context.stash[stash_.x]);
    // Queued products read what dy holds now, or what the norm makes of it.
    const std::int64_t tokens = context.batch.num_tokens();
    const Tensor dx2 = take_scratch(context.arena, dtype_, dy.rows, hidden_, scratch);
    {
      Workspace own(context, dtype_, share_);
      const Tensor dnorm = own.scratch(hidden_);
      const FeedForwardGradient in{a.norm2, dy, dnorm, scratch, sums};
      co_await mlp_.backward(context, gradients, a.mlp, in);
      // dx2 = dy + what comes back through the MLP.
      norm2_.backward(context, gradients, {a.x2, a.norm2_scale, share_.own(dnorm), dy}, dx2);
    }
    const FeedForwardGradient queued{a.norm2, dy, {}, scratch, sums};
    co_await mlp_.queue(context, gradients, a.mlp, queued, products);

    const bool has_room = output_.has_norm() || !share_.alone();
    const Tensor doutput = has_room
                               ? take_scratch(context.arena, compute_, tokens, hidden_, scratch)
                               : itself_or_room(dx2, compute_, context.arena, scratch);
    output_.through_norm(context, gradients, a.output, dx2, share_.own(doutput));
    if (!share_.alone()) co_await exchange(share_.gather(doutput));
    attention_.prepare_backward(context, a.attention, scratch);
    const Edge edge{dx2, doutput};
    co_await backward_attention(context, a, gradients, edge, dy);
    const Tensor norm1 = share_.whole_with(a.norm1, context.arena, scratch);
    if (!share_.alone()) co_await exchange(share_.gather(norm1));
    output_.queue(a.attention.attention, doutput, gradients, products);
    attention_.queue(norm1, a.attention, gradients, products);
  }

 private:
  // What the block keeps.
  struct Activations {
    Tensor x, norm1, norm1_scale;
    typename Attention::Kept attention;
    ResidualPart::Kept output;
    Tensor x2, norm2, norm2_scale;
    typename Mlp::Kept mlp;
  };

  DecoderBlock(const model::Architecture& architecture, const model::LayerSpec& spec,
               const Places& places, std::shared_ptr<const kernels::RotaryTable> rotary)
      : dtype_(architecture.dtype),
        compute_(spec.compute_dtype),
        hidden_(architecture.config.hidden_size),
        share_(architecture),
        norm1_(architecture.decoder, places, Role::kNorm, Role::kNormBias),
        attention_(architecture, spec, std::move(rotary)),
        output_(architecture, spec,
                {Role::kOutput, Role::kOutputBias, Role::kOutputNorm, Role::kOutputNormBias},
                "output"),
        norm2_(architecture.decoder, places, Role::kMlpNorm, Role::kMlpNormBias),
        mlp_(architecture, spec),
        stash_{places.stash("x"),  places.stash("norm1"), places.stash("norm1_scale"),
               places.stash("x2"), places.stash("norm2"), places.stash("norm2_scale")} {}

  Activations activations(Workspace& work, const Tensor& x) const {
    const std::int64_t statistics = norm1_.statistics_cols();
    return {.x = x,
            .norm1 = work.stream_stash_or_scratch(stash_.norm1, hidden_, compute_),
            .norm1_scale = work.stream_stash_or_scratch(stash_.norm1_scale, statistics),
            .attention = attention_.kept(work),
            .output = output_.kept(work),
            .x2 = work.stream_stash_or_scratch(stash_.x2, hidden_),
            .norm2 = work.stream_stash_or_scratch(stash_.norm2, hidden_, compute_),
            .norm2_scale = work.stream_stash_or_scratch(stash_.norm2_scale, statistics),
            .mlp = mlp_.kept(work)};
  }

  // Everything up to norm2.
  Task compute(const Context& context, const Activations& a) const {
    norm1_.forward(context, a.x, a.norm1, a.norm1_scale);
    {
      std::vector<Buffer> buffers;
      const Tensor normed = share_.whole_with(a.norm1, context.arena, buffers);
      if (!share_.alone()) co_await exchange(share_.gather(normed));
      attention_.project(context, normed, a.attention);
    }
    co_await attention_.attend(context, a.attention);
    if (planted(Bug::kAttentionZeroed)) {
      copy_tensor(a.x, a.x2);
    } else {
      co_await output_.forward(context, a.x, a.attention.attention, a.output, a.x2);
    }
    norm2_.forward(context, a.x2, a.norm2, a.norm2_scale);
  }

  // Gradients of what attention gave: as it stands in the residual stream, and before its norm,
  // whole.
  struct Edge {
    Tensor stream, projected;
  };

  // dx = dx2 + what comes back through attention.
  Task backward_attention(const Context& context, const Activations& a,
                          std::span<const GradientTarget> gradients, const Edge& dx2,
                          const Tensor& dx) const {
    Workspace work(context, dtype_, share_);
    const Tensor dattention = work.scratch(a.attention.attention.cols);
    const Tensor dnorm = work.scratch(hidden_);
    output_.backward(context, gradients, dx2.projected, dattention);
    co_await attention_.backward(context, gradients, a.attention, dattention, dnorm);
    if (!share_.alone()) co_await exchange(share_.sum(dnorm));
    norm1_.backward(context, gradients, {a.x, a.norm1_scale, share_.own(dnorm), dx2.stream}, dx);
  }

  DType dtype_, compute_;
  std::int64_t hidden_;
  TensorShare share_;
  Norm norm1_;
  Attention attention_;
  ResidualPart output_;
  Norm norm2_;
  Mlp mlp_;
  struct {
    std::size_t x, norm1, norm1_scale, x2, norm2, norm2_scale;
  } stash_;
};

template <class Attention>
std::unique_ptr<Layer> make_with(const model::Architecture& architecture,
                                 const model::LayerSpec& spec,
                                 std::shared_ptr<const kernels::RotaryTable> rotary) {
  if (architecture.decoder.experts_in(spec.index - 1))
    return std::make_unique<DecoderBlock<Attention, MoePart>>(architecture, spec,
                                                              std::move(rotary));
  return std::make_unique<DecoderBlock<Attention, FeedForward>>(architecture, spec,
                                                                std::move(rotary));
}

}  // namespace

std::unique_ptr<Layer> make_decoder_block(const model::Architecture& architecture,
                                          const model::LayerSpec& spec,
                                          std::shared_ptr<const kernels::RotaryTable> rotary) {
  if (architecture.decoder.latent.key_value_rank > 0)
    return make_with<LatentPart>(architecture, spec, std::move(rotary));
  return make_with<AttentionPart>(architecture, spec, std::move(rotary));
}

}  // namespace ptrain::layers
