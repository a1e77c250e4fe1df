#include "core/model/exchanges.h"

#include <array>

#include "core/model/context_exchanges.h"
#include "core/model/expert_exchanges.h"

namespace ptrain::model {
namespace {

constexpr std::array<std::string_view, 6> kAxes{"tp", "ring", "ulysses",
                                                "ep", "rows", "vocabulary"};
constexpr std::array<std::string_view, 6> kKinds{"all_gather", "reduce_scatter", "all_reduce",
                                                 "all_to_all", "shift",          "arrival"};

// With sequence parallelism (Megatron-LM): each rank holds its tokens of the stream, and its heads
// and columns of every matrix. What a matrix reads is gathered, what it gives is summed into parts.
class TensorExchanges {
 public:
  TensorExchanges(const Architecture& architecture, const LayerSpec& layer)
      : shares_(architecture.tensor.size > 1),
        spreads_embedding_(architecture.embedding.is_spread()),
        spreads_head_(architecture.head.is_spread()),
        norms_after_(architecture.decoder.norms_after),
        gathered_(gathered_rows(architecture, layer)),
        summed_(summed_rows(architecture)),
        stream_(gathered_) {
    stream_.bytes_per_token = summed_.bytes_per_token;
  }

  std::vector<ExchangeSpec> embedding(Call call) const {
    if (!shares_ && !spreads_embedding_) return {};
    if (call == Call::kForward || call == Call::kEvaluate)
      return {over_pipeline(summed_, spreads_embedding_)};
    if (call == Call::kBackward) return {over_pipeline(stream_, spreads_embedding_)};
    return {};
  }

  // Of attention before it attends, and behind that.
  struct Attention {
    std::vector<ExchangeSpec> before, after;
  };
  // Backward: the gradient of an output, that of an input, and the input again, which is stashed
  // in parts.
  Attention attention(Call call) const {
    if (!shares_ || call == Call::kRemake) return {};
    if (call == Call::kBackward) return {{gathered_}, {summed_, gathered_}};
    return {{gathered_}, {summed_}};
  }

  std::vector<ExchangeSpec> feed_forward(Call call) const {
    if (!shares_ || call == Call::kRemake) return {};
    if (call == Call::kBackward) return {gathered_, summed_, gathered_};
    if (call == Call::kRecompute && !norms_after_) return {gathered_};
    return {gathered_, summed_};
  }

  std::vector<ExchangeSpec> head(Call call) const {
    if (!shares_ && !spreads_head_) return {};
    if (call == Call::kEvaluate) return {over_pipeline(gathered_, spreads_head_)};
    if (call == Call::kBackward)
      return {over_pipeline(gathered_, spreads_head_), over_pipeline(summed_, spreads_head_)};
    return {};
  }

 private:
  static ExchangeSpec over_pipeline(ExchangeSpec spec, bool spreads) {
    if (spreads) spec.axis = ExchangeAxis::kVocabulary;
    return spec;
  }

  bool shares_, spreads_embedding_, spreads_head_, norms_after_;
  ExchangeSpec gathered_, summed_, stream_;
};

void append(std::vector<ExchangeSpec>& all, const std::vector<ExchangeSpec>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Attention and its feed-forward; in backward the other way round.
std::vector<ExchangeSpec> block_exchanges(const Architecture& architecture, const LayerSpec& layer,
                                          Call call) {
  const TensorExchanges tensor(architecture, layer);
  const auto feed_forward = architecture.decoder.experts_in(layer.index - 1)
                                ? expert_exchanges(architecture, layer, call)
                                : tensor.feed_forward(call);
  const TensorExchanges::Attention attention = tensor.attention(call);
  std::vector<ExchangeSpec> all;
  if (call == Call::kBackward) append(all, feed_forward);
  append(all, attention.before);
  append(all, context_exchanges(architecture, call));
  append(all, attention.after);
  if (call != Call::kBackward) append(all, feed_forward);
  return all;
}

}  // namespace

std::string_view to_string(ExchangeAxis axis) { return kAxes[static_cast<std::size_t>(axis)]; }
std::string_view to_string(ExchangeKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<ExchangeAxis> exchange_axis_named(std::string_view word) {
  for (std::size_t i = 0; i < kAxes.size(); ++i)
    if (kAxes[i] == word) return static_cast<ExchangeAxis>(i);
  return std::nullopt;
}

ExchangeSpec gathered_rows(const Architecture& architecture, const LayerSpec& layer) {
  return {ExchangeKind::kAllGather, ExchangeAxis::kTensor,
          architecture.config.hidden_size * size_of(layer.compute_dtype)};
}

ExchangeSpec summed_rows(const Architecture& architecture) {
  return {ExchangeKind::kReduceScatter, ExchangeAxis::kTensor,
          architecture.config.hidden_size * size_of(architecture.dtype)};
}

std::vector<ExchangeSpec> exchanges_of(const Architecture& architecture, const LayerSpec& layer,
                                       Call call) {
  if (!layer.held) return {};
  if (layer.kind == LayerKind::kBlock) return block_exchanges(architecture, layer, call);
  const TensorExchanges tensor(architecture, layer);
  return layer.kind == LayerKind::kHead ? tensor.head(call) : tensor.embedding(call);
}

}  // namespace ptrain::model
