#include "core/model/context_exchanges.h"

namespace ptrain::model {
namespace {

AttentionColumns columns_of(const Architecture& architecture, std::int64_t heads,
                            std::int64_t kv_heads) {
  const LatentSpec& latent = architecture.decoder.latent;
  if (latent.key_value_rank > 0) {
    const std::int64_t head = latent.head_dim();
    return {heads * head, heads * (head + latent.value_dim), heads * latent.value_dim};
  }
  const std::int64_t head = architecture.config.head_dim;
  return {heads * head, 2 * kv_heads * head, heads * head};
}

// Tokens counted are a rank's own: of those of the ulysses ranks together there are more.
class ContextExchanges {
 public:
  explicit ContextExchanges(const Architecture& architecture)
      : columns_(ulysses_columns(architecture)),
        ulysses_(architecture.ulysses.size),
        ring_(architecture.ring.size),
        bytes_(ulysses_ * size_of(architecture.dtype)) {}

  std::vector<ExchangeSpec> forward() {
    heads(columns_.all());
    for (int step = 1; step < ring_; ++step) shift(columns_.key_value);
    arrival();
    heads(columns_.output);
    return std::move(exchanges_);
  }

  // Keys and values are a step ahead of the attention that needs them; the gradients that it makes
  // are a step behind, and two behind those of the last keys they are home.
  std::vector<ExchangeSpec> backward() {
    heads(columns_.all() + 2 * columns_.output);
    for (int step = 0; ring_ > 1 && step <= ring_; ++step) {
      const int travelling = (step + 1 < ring_ ? 1 : 0) + (step > 0 ? 1 : 0);
      shift(travelling * columns_.key_value);
    }
    arrival();
    heads(columns_.all());
    return std::move(exchanges_);
  }

 private:
  void heads(std::int64_t columns) {
    if (ulysses_ > 1)
      exchanges_.push_back({ExchangeKind::kAllToAll, ExchangeAxis::kUlysses, columns * bytes_});
  }
  void shift(std::int64_t columns) {
    exchanges_.push_back({ExchangeKind::kShift, ExchangeAxis::kRing, columns * bytes_});
  }

  void arrival() {
    if (ring_ > 1) exchanges_.push_back({ExchangeKind::kArrival, ExchangeAxis::kRing, 0});
  }

  AttentionColumns columns_;
  int ulysses_, ring_;
  std::int64_t bytes_;
  std::vector<ExchangeSpec> exchanges_;
};

}  // namespace

AttentionColumns ulysses_columns(const Architecture& architecture) {
  const recipe::Model& config = architecture.config;
  const int ranks = architecture.ulysses.size;
  return columns_of(architecture, config.num_attention_heads / ranks,
                    key_heads_of_rank(config.num_key_value_heads, ranks));
}

std::vector<ExchangeSpec> context_exchanges(const Architecture& architecture, Call call) {
  ContextExchanges exchanges(architecture);
  switch (call) {
    case Call::kForward:
    case Call::kEvaluate:
    case Call::kRecompute:
      return exchanges.forward();
    case Call::kBackward:
      return exchanges.backward();
    case Call::kRemake:
      return {};
  }
  return {};
}

}  // namespace ptrain::model
