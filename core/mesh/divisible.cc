#include "core/mesh/divisible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptrain::mesh {
namespace {

// What one axis splits: `count` whole things.
struct Splits {
  std::string_view what;
  std::int64_t count = 0;
  bool may_repeat = false;  // fewer than ranks: neighbours hold the same one
  bool by(int degree) const { return count % degree == 0 || (may_repeat && degree % count == 0); }
};

bool has_dense_block(const model::Architecture& whole) {
  const auto& experts = whole.decoder.has_experts;
  return experts.empty() || std::ranges::find(experts, false) != experts.end();
}

std::vector<Splits> split_by_tp(const model::Architecture& whole) {
  const recipe::Model& config = whole.config;
  std::vector<Splits> splits = {{"attention heads", config.num_attention_heads},
                                {"rows of the vocabulary", config.vocab_size}};
  if (whole.decoder.latent.key_value_rank == 0)
    splits.push_back({"heads of keys and values", config.num_key_value_heads, true});
  if (has_dense_block(whole)) splits.push_back({"columns of the MLP", config.intermediate_size});
  if (whole.decoder.moe.shared_inner > 0)
    splits.push_back({"columns of the shared experts", whole.decoder.moe.shared_inner});
  return splits;
}

// The degree that splits everything and is nearest; of two alike the smaller one.
int nearest(const std::vector<Splits>& splits, int degree) {
  const auto fits = [&](int candidate) {
    return std::ranges::all_of(splits, [&](const Splits& split) { return split.by(candidate); });
  };
  for (int distance = 1; distance < degree; ++distance) {
    if (fits(degree - distance)) return degree - distance;
    if (fits(degree + distance)) return degree + distance;
  }
  return 1;
}

Status check_axis(std::string_view axis, int degree, const std::vector<Splits>& splits) {
  for (const Splits& split : splits)
    if (!split.by(degree))
      return fail(ExitCode::kUsage,
                  fmt::format("layout: {} is {}, which does not divide {} {}", axis, degree,
                              split.count, split.what),
                  fmt::format("the nearest that does is {} {}", axis, nearest(splits, degree)));
  return {};
}

// Of the heads that tp leaves a rank.
Status check_context(const model::Architecture& whole, const Layout& layout) {
  if (layout.cp == 1) return {};
  const recipe::Model& config = whole.config;
  const std::int64_t kv_heads = model::key_heads_of_rank(config.num_key_value_heads, layout.tp);
  return check_axis("cp.ulysses", layout.ulysses,
                    {{"attention heads of a rank", config.num_attention_heads / layout.tp},
                     {"heads of keys and values of a rank", kv_heads, true}});
}

}  // namespace

Status check_divisible(const model::Architecture& whole, const Layout& layout) {
  const model::MoeSpec& moe = whole.decoder.moe;
  if (layout.tp > 1) PTRAIN_CHECK(check_axis("tp", layout.tp, split_by_tp(whole)));
  PTRAIN_CHECK(check_context(whole, layout));
  if (moe.num_experts == 0 && (layout.ep > 1 || layout.etp > 1))
    return fail(ExitCode::kUsage,
                fmt::format("layout: ep is {} and etp {}, but the model has no experts", layout.ep,
                            layout.etp),
                "set ep and etp to 1");
  if (moe.num_experts == 0) return {};
  const int ranks = layout.num_stage_ranks();
  PTRAIN_CHECK(check_axis("etp", layout.etp,
                          {{"columns of an expert", moe.inner}, {"ranks of a stage", ranks}}));
  return check_axis(
      "ep", layout.ep,
      {{"experts", moe.num_experts}, {"ranks of a stage over etp", ranks / layout.etp}});
}

}  // namespace ptrain::mesh
