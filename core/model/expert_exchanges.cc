#include "core/model/expert_exchanges.h"

#include <utility>

namespace ptrain::model {
namespace {

class ExpertExchanges {
 public:
  ExpertExchanges(const Architecture& architecture, const LayerSpec& layer)
      : architecture_(architecture),
        gathered_(gathered_rows(architecture, layer)),
        hidden_(architecture.config.hidden_size),
        wide_(size_of(architecture.dtype)),
        narrow_(size_of(layer.compute_dtype)) {}

  std::vector<ExchangeSpec> forward() {
    if (moe().capacity_factor > 0) choices();
    routed(0);
    routed(hidden_ * narrow_);
    shared(gathered_);
    shared(summed_rows(architecture_));
    routed(hidden_ * wide_);
    return std::move(exchanges_);
  }

  std::vector<ExchangeSpec> recompute() {
    routed(hidden_ * narrow_);
    shared(gathered_);
    return std::move(exchanges_);
  }

  // Of a choice the weight travels too, and its gradient.
  std::vector<ExchangeSpec> backward() {
    routed(2 * hidden_ * narrow_ + wide_);
    shared(gathered_);
    shared(summed_rows(architecture_));
    routed((hidden_ + 1) * wide_);
    choices();
    shared(gathered_);
    return std::move(exchanges_);
  }

 private:
  const MoeSpec& moe() const { return architecture_.decoder.moe; }
  void shared(const ExchangeSpec& exchange) {
    if (architecture_.tensor.size > 1 && moe().shared_inner > 0) exchanges_.push_back(exchange);
  }
  // Of a choice so many bytes, to each of the ranks with columns of its expert; where the tensor
  // axis shares tokens each rank gives its own. In the mean: an even choice gives back as much.
  void routed(std::int64_t bytes_of_choice) {
    if (architecture_.experts.size() > 1)
      exchanges_.push_back(
          {ExchangeKind::kAllToAll, ExchangeAxis::kExperts,
           moe().top_k * architecture_.experts.etp * bytes_of_choice / architecture_.tensor.size});
  }
  // Of all tokens that the ranks hold: a rank's own are counted, those of its context are more.
  void choices() {
    const int context = architecture_.ring.size * architecture_.ulysses.size;
    if (architecture_.tensor.size * context > 1)
      exchanges_.push_back({ExchangeKind::kAllGather, ExchangeAxis::kRows,
                            moe().top_k * size_of(DType::kInt32) * context});
  }

  const Architecture& architecture_;
  ExchangeSpec gathered_;
  std::int64_t hidden_, wide_, narrow_;
  std::vector<ExchangeSpec> exchanges_;
};

}  // namespace

std::vector<ExchangeSpec> expert_exchanges(const Architecture& architecture, const LayerSpec& layer,
                                           Call call) {
  ExpertExchanges exchanges(architecture, layer);
  switch (call) {
    case Call::kForward:
    case Call::kEvaluate:
      return exchanges.forward();
    case Call::kRecompute:
      return exchanges.recompute();
    case Call::kBackward:
      return exchanges.backward();
    case Call::kRemake:
      return {};
  }
  return {};
}

}  // namespace ptrain::model
