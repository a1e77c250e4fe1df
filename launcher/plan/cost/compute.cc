#include "launcher/plan/cost/compute.h"

#include <algorithm>

namespace ptrain::plan {

namespace {

using model::LayerKind;
using model::LayerSpec;
using program::Action;
using program::Kind;

// Attention multiplies small blocks and takes exponentials between. Fitted to CPU seconds of whole
// steps of this engine (4 heads of 32, rows of 128 and 512 tokens): a tenth of the best matmul's
// rate.
constexpr double kAttentionRate = 0.1;
// Forward makes two products of a block, backward five.
constexpr double kAttentionBackward = 2.5;
// Every kept tensor is written once and read about once more by the kernel after it.
constexpr double kForwardTouches = 2;
// Read for the gradient of the weights and of the input, and a gradient of its size is written and
// read.
constexpr double kBackwardTouches = 4;
// Logits of a chunk: written by the matmul, read for maximum and sum, turned into gradients in
// place.
constexpr double kLogitTouches = 4;
// AdamW reads parameter, gradient and two moments and writes parameter and moments.
constexpr double kAdamTouches = 7;
// Calls, queues and events around one action.
constexpr double kActionOverhead_s = 1e-5;

double tokens_of(const CostContext& context) {
  return static_cast<double>(context.layout.micro_batch * context.sequence);
}

double element_bytes(const CostContext& context) {
  return static_cast<double>(size_of(context.architecture.dtype));
}

double stash_bytes_per_token(const LayerSpec& layer) {
  double bytes = 0;
  for (const auto& tensor : layer.stash)
    bytes += static_cast<double>(tensor.elements_per_token * size_of(tensor.dtype));
  return bytes;
}

// Elements of the weights that the layer multiplies with; an embedding reads single rows only.
double weight_elements(const CostContext& context, const LayerSpec& layer) {
  if (layer.kind == LayerKind::kEmbedding) return 0;
  double elements = 0;
  for (const int parameter : layer.parameters)
    elements += static_cast<double>(
        context.architecture.parameters[static_cast<std::size_t>(parameter)].num_elements());
  return elements;
}

double activation_bytes(const CostContext& context, const LayerSpec& layer, double touches) {
  const auto& config = context.architecture.config;
  const double tokens = tokens_of(context);
  const double hidden = static_cast<double>(config.hidden_size) * element_bytes(context);
  double bytes = tokens * touches * (stash_bytes_per_token(layer) + hidden);
  if (layer.kind == LayerKind::kHead)
    bytes +=
        tokens * kLogitTouches * static_cast<double>(config.vocab_size) * element_bytes(context);
  return bytes;
}

double seconds_of(const LayerWork& work, const CostContext& context) {
  const double rate = context.figures.matmul(context.architecture.dtype) *
                      static_cast<double>(context.placement.threads);
  const double arithmetic =
      work.matmul_flops / rate + work.attention_flops / (rate * kAttentionRate);
  return (arithmetic + work.bytes / context.figures.memory_bytes_per_s) *
         context.placement.slowdown;
}

// Elements that this layout leaves on one rank: of one group, or of all (-1).
double local_elements(const CostContext& context, int group) {
  double elements = 0;
  for (const auto& buffer : context.buffers)
    if (group < 0 || buffer.group == group)
      elements += static_cast<double>(buffer.total()) / std::max(1, buffer.num_ranks());
  return elements;
}

double streaming_seconds(double bytes, const CostContext& context) {
  return bytes / context.figures.memory_bytes_per_s * context.placement.slowdown;
}

}  // namespace

LayerWork forward_work(const CostContext& context, const LayerSpec& layer) {
  LayerWork work;
  const double tokens = tokens_of(context);
  for (const auto& segment : layer.segments) {
    work.matmul_flops += tokens * segment.flops_per_token;
    work.attention_flops += tokens * context.pairs_per_token * segment.flops_per_attended_pair;
  }
  work.bytes = activation_bytes(context, layer, kForwardTouches) +
               weight_elements(context, layer) * element_bytes(context);
  return work;
}

LayerWork backward_work(const CostContext& context, const LayerSpec& layer, bool accumulates) {
  const LayerWork forward = forward_work(context, layer);
  LayerWork work{2 * forward.matmul_flops, kAttentionBackward * forward.attention_flops, 0};
  const double weights = weight_elements(context, layer) * element_bytes(context);
  work.bytes = activation_bytes(context, layer, kBackwardTouches) + weights * (accumulates ? 3 : 2);
  return work;
}

double compute_seconds(const Action& action, const CostContext& context) {
  double seconds = kActionOverhead_s;
  const bool accumulates = action.attribute("accumulate") == "1";
  const auto add_layers = [&](auto work_of) {
    for (int index = action.layer_first; index >= 0 && index <= action.layer_last; ++index)
      seconds += seconds_of(work_of(context.architecture.layers[static_cast<std::size_t>(index)]),
                            context);
  };
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kRecompute:
      add_layers([&](const LayerSpec& layer) { return forward_work(context, layer); });
      return seconds;
    case Kind::kBackward:
      add_layers(
          [&](const LayerSpec& layer) { return backward_work(context, layer, accumulates); });
      return seconds;
    case Kind::kGradNorm:
      return seconds +
             streaming_seconds(local_elements(context, -1) * element_bytes(context), context);
    case Kind::kOptimizer:
      return seconds + streaming_seconds(kAdamTouches * local_elements(context, action.group) *
                                             element_bytes(context),
                                         context);
    default:
      return 0;
  }
}

}  // namespace ptrain::plan
