
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

AttentionLoad attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                             std::int64_t block_rows) {
  AttentionLoad sum;
  double tokens = 0;
  const auto add = [&](std::int64_t piece, double count) {
    const auto rows = static_cast<double>(block_rows);
    const auto whole = static_cast<double>(piece / block_rows);
    const auto rest = static_cast<double>(piece % block_rows);
    sum.blocks += count * (whole + (rest > 0 ? 1 : 0));
    sum.pairs += count * (rows * rows * whole * (whole + 1) / 2 + rest * (whole * rows + rest));
    tokens += count * static_cast<double>(piece);
  };
  for (const auto& [length, count] : lengths) {
    add(sequence, static_cast<double>(length / sequence * count));
    add(length % sequence, static_cast<double>(count));
  }
  if (tokens == 0) add(sequence, 1);
  return {sum.blocks / tokens, sum.pairs / tokens};
}

}  // namespace ptrain::plan
