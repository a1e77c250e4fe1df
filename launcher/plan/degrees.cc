#include "launcher/plan/degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/recipe/pipeline_fields.h"

namespace ptrain::plan {
namespace {

constexpr const char* kMoreRanks =
    "change a degree, or give cluster.ranks_per_node (more ranks than cores may share them)";

// Of a run whose ranks are all taken by `degrees` ("dp 2"), of which pp is none.
Status check_room_for_pipeline(const std::string& name, const recipe::Parallel& fixed,
                               const std::string& degrees, int num_ranks) {
  const auto fields = recipe::pipeline_fields_in(fixed);
  if (fields.empty()) return {};
  const std::string ranks = ranks_text(static_cast<std::size_t>(num_ranks));
  return fail(
      ExitCode::kUsage,
      fmt::format("shape '{}': parallel.{} needs a pp of 2 or more, but {}", name,
                  fields.front().text,
                  degrees.empty() ? fmt::format("this run has {}", ranks)
                                  : fmt::format("{} takes the {} of this run", degrees, ranks)),
      fmt::format("{}, or leave the field out", kMoreRanks));
}

}  // namespace

std::string ranks_text(std::size_t num_ranks) {
  return num_ranks == 1 ? "one rank" : fmt::format("{} ranks", num_ranks);
}

int fixed_sharers(const recipe::Parallel& fixed) {
  return std::max(1, fixed.tp) * std::max(1, fixed.pp) * std::max(1, fixed.ring) *
         std::max(1, fixed.ulysses);
}

std::int64_t fixed_expert_ranks(const recipe::Parallel& fixed) {
  return std::int64_t{std::max(1, fixed.pp)} * std::max(1, fixed.ep) * std::max(1, fixed.etp);
}

Status check_degrees(const std::string& name, const recipe::Parallel& fixed, int num_ranks) {
  const std::pair<std::string_view, int> degrees[] = {
      {"dp", fixed.dp}, {"shard", fixed.shard},  {"tp", fixed.tp},
      {"pp", fixed.pp}, {"cp.ring", fixed.ring}, {"cp.ulysses", fixed.ulysses}};
  std::string text;
  std::int64_t product = 1;
  for (const auto& [axis, degree] : degrees) {
    if (degree <= 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis, degree);
    product *= degree;
  }
  if (num_ranks == product && fixed.pp == 0)
    return check_room_for_pipeline(name, fixed, text, num_ranks);
  if (num_ranks % product == 0) return {};
  return fail(
      ExitCode::kUsage,
      fmt::format("shape '{}': parallel fixes {}, and {} does not divide the {} of this run", name,
                  text, product, ranks_text(static_cast<std::size_t>(num_ranks))),
      kMoreRanks);
}

}  // namespace ptrain::plan
