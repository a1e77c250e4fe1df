#include "launcher/plan/cost/compute.h"

#include <algorithm>
#include <cmath>

#include "core/program/segments.h"

namespace ptrain::plan {

namespace {

using model::LayerKind;
using model::LayerSpec;
using program::Action;
using program::Keep;
using program::Kind;

// Calls, queues and events around one action.
constexpr double kActionOverhead_s = 1e-5;
// A probe repeats one kernel on data that its caches hold; in a step each kernel finds what others
// left. Measured CPU seconds of steps over predictions without it, six layouts of two ranks: 1.26
// to 1.5.
constexpr double kColdCaches = 1.3;

// What is made again is all made by element-wise work, unlike the products among the tensors that
// a forward keeps, by whose bytes its element-wise work is counted. Measured 4 times as long a byte
// (4 x 256 and 8 x 512, fp32); the forward saves some of it, since scratch stays in caches.
constexpr double kRemadeWeight = 3;

double tokens_of(const CostContext& context) {
  return static_cast<double>(context.layout.micro_batch * context.sequence / context.layout.cp);
}

double element_bytes(const CostContext& context) {
  return static_cast<double>(size_of(context.architecture.dtype));
}

// How much longer the vector kernels take than in fp32.
double dtype_factor(const CostContext& context) {
  return element_bytes(context) / static_cast<double>(size_of(DType::kFloat32));
}

// As if experts were chosen evenly.
double rows_of_token(const model::Architecture& part, model::StashRows rows) {
  switch (rows) {
    case model::StashRows::kTokens:
      return 1;
    case model::StashRows::kStream:
      return 1.0 / part.tensor.size;
    case model::StashRows::kExperts:
      return static_cast<double>(part.decoder.moe.top_k * part.experts.etp) / part.tensor.size;
    case model::StashRows::kCall:
      return 0;
  }
  return 0;
}

// Of the tensors that are not there yet. As if all were kept in the dtype of sums: rounding to
// another is work too.
double kept_bytes_per_token(const CostContext& context, const LayerSpec& layer, Keep there) {
  double elements = 0;
  for (const auto& tensor : layer.stash)
    if (!program::keeps(there, tensor))
      elements += static_cast<double>(tensor.elements_per_token) *
                  rows_of_token(context.architecture, tensor.rows);
  return elements * element_bytes(context);
}

// Of all products of a layer once; the linears of a segment are one product.
double matmul_seconds(const CostContext& context, const LayerSpec& layer,
                      double cluster::PassRate::*pass) {
  const DType dtype = layer.compute_dtype;
  const double rate =
      context.figures.matmul(dtype) * static_cast<double>(context.placement.threads);
  double seconds = 0;
  for (const auto& segment : layer.segments) {
    const double width = std::sqrt(segment.flops_per_token / 2);
    if (width > 0)
      seconds += tokens_of(context) * segment.flops_per_token /
                 (rate * (share_at(context.figures.shares(dtype), width).*pass));
  }
  return seconds;
}

double attention_seconds(const CostContext& context, const LayerSpec& layer,
                         cluster::HeadCost cluster::AttentionCost::*pass) {
  const bool attends = std::any_of(layer.segments.begin(), layer.segments.end(),
                                   [](const auto& s) { return s.flops_per_attended_pair > 0; });
  if (!attends) return 0;
  const auto& config = context.architecture.config;
  const cluster::HeadCost& head = context.figures.attention_of(layer.compute_dtype).*pass;
  const double pair_s = head.pair_s + static_cast<double>(config.head_dim) * head.pair_dim_s;
  const double of_head = context.attention.blocks * head.block_s + context.attention.pairs * pair_s;
  const double slower =
      context.figures.matmul_float32 / context.figures.matmul(context.architecture.dtype);
  return tokens_of(context) * static_cast<double>(config.num_attention_heads) * of_head * slower /
         static_cast<double>(context.placement.threads);
}

double kept_seconds(const CostContext& context, const LayerSpec& layer, double bytes_per_s,
                    Keep there = Keep::kNone) {
  return tokens_of(context) * kept_bytes_per_token(context, layer, there) / bytes_per_s;
}

// Elements that this layout leaves on one rank.
double local_elements(const mesh::BufferPlan& buffer) {
  return static_cast<double>(buffer.total()) / std::max(1, buffer.num_ranks());
}

double local_elements(const CostContext& context) {
  double elements = 0;
  for (const auto& buffer : context.buffers) elements += local_elements(buffer);
  return elements;
}

// Of the matrices of a group that Muon orthogonalises, on a rank in the mean: five steps of three
// products each.
double orthogonalise_seconds(const CostContext& context, int group) {
  double flops = 0;
  for (const auto& placement : context.buffers[static_cast<std::size_t>(group)].placements) {
    const auto& parameter =
        context.architecture.parameters[static_cast<std::size_t>(placement.parameter)];
    if (parameter.rule != model::UpdateRule::kMuon) continue;
    const auto [least, most] = std::minmax(parameter.shape[0], parameter.shape[1]);
    const auto m = static_cast<double>(least), n = static_cast<double>(most);
    flops += 5 * (4 * m * m * n + 2 * m * m * m);
  }
  const int ranks = context.buffers[static_cast<std::size_t>(group)].num_ranks();
  return flops /
         (ranks * context.placement.threads * context.figures.matmul(context.architecture.dtype));
}

}  // namespace

cluster::PassRate share_at(std::span<const cluster::WidthShare> shares, double width) {
  const auto above = std::find_if(shares.begin(), shares.end(), [&](const auto& share) {
    return static_cast<double>(share.width) >= width;
  });
  if (above == shares.begin()) return {above->forward, above->backward};
  const auto& low = *(above - 1);
  if (above == shares.end()) return {low.forward, low.backward};
  const double low_log = std::log(static_cast<double>(low.width));
  const double part =
      (std::log(width) - low_log) / (std::log(static_cast<double>(above->width)) - low_log);
  return {std::lerp(low.forward, above->forward, part),
          std::lerp(low.backward, above->backward, part)};
}

LayerSeconds forward_seconds(const CostContext& context, const LayerSpec& layer) {
  LayerSeconds out;
  out.kept_s = kept_seconds(context, layer, context.figures.kept_bytes_per_s.forward);
  if (layer.kind == LayerKind::kHead) return out;
  out.matmul_s = matmul_seconds(context, layer, &cluster::PassRate::forward);
  out.attention_s = attention_seconds(context, layer, &cluster::AttentionCost::forward);
  return out;
}

LayerSeconds backward_seconds(const CostContext& context, const LayerSpec& layer) {
  LayerSeconds out;
  out.kept_s = kept_seconds(context, layer, context.figures.kept_bytes_per_s.backward);
  out.matmul_s = 2 * matmul_seconds(context, layer, &cluster::PassRate::backward);
  out.attention_s = attention_seconds(context, layer, &cluster::AttentionCost::backward);
  if (layer.kind == LayerKind::kHead) {
    out.matmul_s += matmul_seconds(context, layer, &cluster::PassRate::forward);
    out.loss_s = tokens_of(context) * static_cast<double>(context.architecture.num_head_rows()) *
                 dtype_factor(context) / context.figures.cross_entropy_logits_per_s;
  }
  return out;
}

LayerSeconds backward_input_seconds(const CostContext& context, const LayerSpec& layer) {
  LayerSeconds out = backward_seconds(context, layer);
  out.matmul_s -= backward_weight_seconds(context, layer).matmul_s;
  return out;
}

LayerSeconds backward_weight_seconds(const CostContext& context, const LayerSpec& layer) {
  LayerSeconds out;
  if (layer.kind == LayerKind::kBlock)
    out.matmul_s = matmul_seconds(context, layer, &cluster::PassRate::backward);
  return out;
}

LayerSeconds recompute_seconds(const CostContext& context, const LayerSpec& layer, Keep from) {
  if (from != Keep::kSelected) return forward_seconds(context, layer);
  LayerSeconds out;
  out.kept_s =
      kRemadeWeight * kept_seconds(context, layer, context.figures.kept_bytes_per_s.forward, from);
  return out;
}

double compute_seconds(const Action& action, const CostContext& context) {
  double seconds = 0;
  const auto add_layers = [&](auto seconds_of) {
    for (int index = action.layer_first; index >= 0 && index <= action.layer_last; ++index)
      seconds +=
          seconds_of(context, context.architecture.layers[static_cast<std::size_t>(index)]).total();
    // As if the segments of a call were alike: what lies between them belongs to the same lane.
    if (action.segment >= 0)
      seconds /= 1 + static_cast<double>(exchanges_of(action, context.architecture).size());
  };
  switch (action.kind) {
    case Kind::kForward:
      add_layers(forward_seconds);
      break;
    case Kind::kRecompute:
      add_layers([&](const CostContext& of, const LayerSpec& layer) {
        const auto from = program::keep_named(action.attribute("from"));
        return recompute_seconds(of, layer, from.value_or(Keep::kInput));
      });
      break;
    case Kind::kBackward:
      add_layers(backward_seconds);
      break;
    case Kind::kBackwardInput:
      add_layers(backward_input_seconds);
      break;
    case Kind::kBackwardWeight:
      add_layers(backward_weight_seconds);
      break;
    case Kind::kGradNorm:
      seconds =
          local_elements(context) * element_bytes(context) / context.figures.memory_bytes_per_s;
      break;
    case Kind::kOptimizer:
      seconds = local_elements(context.buffers[static_cast<std::size_t>(action.group)]) *
                    dtype_factor(context) / context.figures.adamw_parameters_per_s +
                orthogonalise_seconds(context, action.group);
      break;
    default:
      return 0;
  }
  return kActionOverhead_s + kColdCaches * seconds * context.placement.slowdown;
}

}  // namespace ptrain::plan
