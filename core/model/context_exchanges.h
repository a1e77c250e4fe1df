#pragma once

#include <vector>

#include "core/model/exchanges.h"

namespace ptrain::model {

// Columns of queries, keys and values, and of what attention gives. Of latent attention too.
struct AttentionColumns {
  std::int64_t query = 0, key_value = 0, output = 0;
  std::int64_t all() const { return query + key_value; }
};

// Those of the heads that one of the ulysses ranks attends with. Where these ranks are more than
// heads of keys and values, neighbours have the same one.
AttentionColumns ulysses_columns(const Architecture& architecture);

// What attention itself needs of the ranks that share rows; none where there are no others. Each
// ulysses rank gives its tokens' columns for those of its heads, and back. Keys and values travel
// around the ring; in backward with their gradients, which then go home.
std::vector<ExchangeSpec> context_exchanges(const Architecture& architecture, Call call);

}  // namespace ptrain::model
