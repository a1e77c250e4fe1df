#include "core/model/exchanges.h"

#include <array>
#include <utility>

#include "core/model/context_exchanges.h"

namespace ptrain::model {
namespace {

constexpr std::array<std::string_view, 4> kAxes{"tp", "ring", "ulysses", "ep"};
constexpr std::array<std::string_view, 5> kKinds{"all_gather", "reduce_scatter", "all_reduce",
                                                 "all_to_all", "shift"};

// With sequence parallelism (Megatron-LM): each rank holds its tokens of the stream, and its heads
// and columns of every matrix. What a matrix reads is gathered, what it gives is summed into parts.
class TensorExchanges {
 public:
  explicit TensorExchanges(const Architecture& architecture)
      : hidden_(architecture.config.hidden_size),
        norms_after_(architecture.decoder.norms_after),
        gathered_{ExchangeKind::kAllGather, ExchangeAxis::kTensor,
                  hidden_ * size_of(architecture.compute_dtype)},
        summed_{ExchangeKind::kReduceScatter, ExchangeAxis::kTensor,
                hidden_ * size_of(architecture.dtype)},
        stream_{ExchangeKind::kAllGather, ExchangeAxis::kTensor,
                hidden_ * size_of(architecture.dtype)} {}

  std::vector<ExchangeSpec> embedding(Call call) const {
    if (call == Call::kForward || call == Call::kEvaluate) return {summed_};
    if (call == Call::kBackward) return {stream_};
    return {};
  }

  // Before attention attends, and behind it.
  struct Block {
    std::vector<ExchangeSpec> before, after;
  };
  // Backward: the gradient of an output, that of an input, and the input again, which is stashed
  // in parts; first of the MLP, then of attention.
  Block block(Call call) const {
    switch (call) {
      case Call::kForward:
      case Call::kEvaluate:
        return {{gathered_}, {summed_, gathered_, summed_}};
      case Call::kRecompute:
        if (norms_after_) return {{gathered_}, {summed_, gathered_, summed_}};
        return {{gathered_}, {summed_, gathered_}};
      case Call::kRemake:
        return {};
      case Call::kBackward:
        return {{gathered_, summed_, gathered_, gathered_}, {summed_, gathered_}};
    }
    return {};
  }

  std::vector<ExchangeSpec> head(Call call) const {
    if (call == Call::kEvaluate) return {gathered_};
    if (call == Call::kBackward) return {gathered_, summed_};
    return {};
  }

 private:
  std::int64_t hidden_;
  bool norms_after_;
  ExchangeSpec gathered_, summed_, stream_;
};

std::vector<ExchangeSpec> block_exchanges(const Architecture& architecture, Call call) {
  TensorExchanges::Block block;
  if (architecture.tensor.size > 1) block = TensorExchanges(architecture).block(call);
  std::vector<ExchangeSpec> all = std::move(block.before);
  const auto attention = context_exchanges(architecture, call);
  all.insert(all.end(), attention.begin(), attention.end());
  all.insert(all.end(), block.after.begin(), block.after.end());
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

std::vector<ExchangeSpec> exchanges_of(const Architecture& architecture, const LayerSpec& layer,
                                       Call call) {
  if (!layer.held) return {};
  if (layer.kind == LayerKind::kBlock) return block_exchanges(architecture, call);
  if (architecture.tensor.size == 1) return {};
  const TensorExchanges tensor(architecture);
  return layer.kind == LayerKind::kHead ? tensor.head(call) : tensor.embedding(call);
}

}  // namespace ptrain::model
