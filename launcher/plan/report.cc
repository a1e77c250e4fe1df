#include "launcher/plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "core/mesh/stages.h"
#include "launcher/plan/degrees.h"
#include "launcher/plan/explain.h"
#include "launcher/plan/order.h"

namespace ptrain::plan {

namespace {

using nlohmann::json;
using program::MemoryClass;

constexpr std::size_t kShownLayouts = 10;
constexpr double kMib = 1024.0 * 1024.0;

double mib(const Bytes& bytes) { return static_cast<double>(bytes.value) / kMib; }

// Milliseconds below a second, seconds above.
std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

// Columns of bytes: a class of its own where a planner can act on it, the rest together.
constexpr MemoryClass kShownClasses[] = {MemoryClass::kParameters, MemoryClass::kGradients,
                                         MemoryClass::kOptimizer, MemoryClass::kGather,
                                         MemoryClass::kStash};

// Of the names of layouts.
std::size_t width_of(std::span<const Candidate> candidates) {
  std::size_t width = 40;
  for (const Candidate& candidate : candidates)
    width = std::max(width, name_of(candidate.layout).size() + 1);
  return width;
}

std::string heading(std::size_t width) {
  return fmt::format("  {:<4}{:<{}}{:>10}{:>11}{:>7}{:>8}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}\n", "",
                     "layout", width, "step", "tokens/s", "MFU", "MiB", "param", "grad", "optim",
                     "gather", "stash", "other");
}

std::string row(std::size_t place, const Candidate& candidate, std::size_t width) {
  const run::Prediction& predicted = candidate.predicted;
  const double total = static_cast<double>(program::total_bytes(candidate.bytes)) / kMib;
  std::string text = fmt::format("  {:<4}{:<{}}{:>10}{:>11.0f}{:>6.1f}%{:>8.0f}", place,
                                 name_of(candidate.layout), width, duration(predicted.step_s),
                                 predicted.tokens_per_s, predicted.mfu * 100, total);
  double other = total;
  for (const MemoryClass shown : kShownClasses) {
    const double value = mib(candidate.bytes[static_cast<std::size_t>(shown)]);
    other -= value;
    text += value < 10'000 ? fmt::format("{:>7.1f}", value) : fmt::format("{:>7.0f}", value);
  }
  return text + fmt::format("{:>7.0f}\n", other);
}

// By what one layout comes before another.
std::string order_text() {
  return fmt::format(
      "the fastest first, where each of pp, tp, cp and ep must save {:.0f} % of a step; those "
      "within {:.0f} % of it by the fewest of these axes, then memory, then the plainest",
      kAxisWorth * 100, kTie * 100);
}

std::string shape_text(const run::ShapePlan& shape, const Ranking& ranking, std::size_t num_ranks,
                       bool explain) {
  const run::Prediction& predicted = shape.predicted;
  std::string text =
      fmt::format("\nshape {}: {} on {} of {} {}, {} a step (between {} and {})\n", shape.name,
                  name_of(shape.layout), ranks_text(num_ranks), shape.threads,
                  shape.threads == 1 ? "thread" : "threads", duration(predicted.step_s),
                  duration(predicted.low_s), duration(predicted.high_s));
  const std::size_t count = ranking.ranked.size();
  const std::size_t shown = explain ? count : std::min(count, kShownLayouts);
  const std::size_t width = width_of(std::span(ranking.ranked).first(shown));
  text += heading(width);
  for (std::size_t i = 0; i < shown; ++i) text += row(i + 1, ranking.ranked[i], width);
  if (shown < count) text += fmt::format("  ... and {} more (--explain)\n", count - shown);
  if (!explain) return text;
  text += fmt::format("  search: {}\n", how_searched(ranking.effort));
  text += fmt::format("  order: {}\n", order_text());
  if (const auto bound = experts_bound(ranking); !bound.empty())
    text += fmt::format("  experts: {}\n", bound);
  if (const auto why = why_first(ranking); !why.empty()) text += fmt::format("  why: {}\n", why);
  if (const auto why = why_recompute(ranking); !why.empty())
    text += fmt::format("  recompute: {}\n", why);
  for (const auto& rejection : shape.rejected)
    text += fmt::format("  out: {} x {} (nearest: {})\n", rejection.count, rejection.reason,
                        rejection.nearest);
  return text;
}

// Of each stage, in the recipe's words; none where all multiply in the recipe's precision.
json stage_dtypes_json(const mesh::Layout& layout) {
  json words = json::array();
  const auto num_layers = static_cast<int>(layout.layer_dtypes.size());
  if (num_layers == 0) return words;
  const auto stages = mesh::layers_of_stages(layout, num_layers);
  for (std::size_t s = 0; stages && s < stages->size(); ++s) {
    const auto first = static_cast<std::size_t>((*stages)[s].begin);
    words.push_back(layout.layer_dtypes[first] == DType::kBFloat16 ? "bf16" : "fp32");
  }
  return words;
}

json stage_recompute_json(const mesh::Layout& layout) {
  json words = json::array();
  for (const recipe::Recompute recompute : layout.stage_recompute)
    words.push_back(recipe::to_string(recompute));
  return words;
}

json layout_json(const mesh::Layout& layout) {
  return {{"layout", name_of(layout)},
          {"dp", layout.dp},
          {"shard", layout.shard},
          {"tp", layout.tp},
          {"pp", layout.pp},
          {"virtual", layout.num_virtual},
          {"schedule", layout.schedule},
          {"schedule_csv", layout.schedule_csv},
          {"stages", layout.stage_layers},
          {"embedding", layout.spread_embedding ? "all_stages" : "first_stage"},
          {"head", layout.spread_head ? "all_stages" : "last_stage"},
          {"ring", layout.cp / layout.ulysses},
          {"ulysses", layout.ulysses},
          {"ep", layout.ep},
          {"etp", layout.etp},
          {"zero", layout.zero},
          {"micro_batch", layout.micro_batch},
          {"num_micro_batches", layout.num_micro_batches},
          {"recompute", recipe::to_string(layout.recompute)},
          {"stage_recompute", stage_recompute_json(layout)},
          {"stage_dtype", stage_dtypes_json(layout)},
          {"prefetch", layout.prefetch},
          {"offload", layout.offload == recipe::Offload::kOptimizer ? "optimizer" : "none"},
          {"shared_window", layout.shared_window}};
}

json candidate_json(const Candidate& candidate) {
  const run::Prediction& predicted = candidate.predicted;
  json out = layout_json(candidate.layout);
  out["step_s"] = predicted.step_s;
  out["low_s"] = predicted.low_s;
  out["high_s"] = predicted.high_s;
  out["tokens_per_s"] = predicted.tokens_per_s;
  out["mfu"] = predicted.mfu;
  out["bubble"] = predicted.bubble;
  out["exposed_s"] = predicted.exposed_s;
  for (std::size_t t = 0; t < kNumTerms; ++t)
    out["terms_s"][std::string(to_string(static_cast<Term>(t)))] = candidate.terms_s[t];
  out["most_bytes"] = candidate.most_bytes;
  for (std::size_t c = 0; c < program::kNumMemoryClasses; ++c)
    out["bytes"][std::string(program::to_string(static_cast<MemoryClass>(c)))] =
        candidate.bytes[c].value;
  return out;
}

json shape_json(const run::ShapePlan& shape, const Ranking& ranking) {
  json ranked = json::array();
  for (const Candidate& candidate : ranking.ranked) ranked.push_back(candidate_json(candidate));
  json rejected = json::array();
  for (const auto& one : shape.rejected)
    rejected.push_back({{"reason", one.reason}, {"count", one.count}, {"nearest", one.nearest}});
  return {{"name", shape.name},
          {"threads", shape.threads},
          {"program_hash", shape.predicted.classes.front().program_hash},
          {"why", why_first(ranking)},
          {"search",
           {{"degrees", ranking.effort.num_degrees},
            {"degrees_opened", ranking.effort.num_degrees_opened},
            {"layouts", ranking.effort.num_layouts},
            {"simulated", ranking.effort.num_simulated},
            {"left", ranking.effort.num_left}}},
          {"experts", experts_bound(ranking)},
          {"expert_load", ranking.expert_load},
          {"why_recompute", why_recompute(ranking)},
          {"ranked", std::move(ranked)},
          {"rejected", std::move(rejected)}};
}

}  // namespace

std::string to_text(const Planning& planning, bool explain) {
  const run::Plan& plan = planning.plan;
  std::string text = fmt::format("plan of {} on {}: {}\n", plan.recipe.name, plan.cluster,
                                 ranks_text(plan.ranks.size()));
  text += fmt::format("times: {}\ndocuments: {}\n", planning.figures, planning.documents);
  for (const auto& note : planning.notes) text += fmt::format("note: {}\n", note);
  for (std::size_t s = 0; s < plan.shapes.size(); ++s)
    text += shape_text(plan.shapes[s], planning.rankings[s], plan.ranks.size(), explain);
  return text;
}

json to_json(const Planning& planning) {
  const run::Plan& plan = planning.plan;
  json shapes = json::array();
  for (std::size_t s = 0; s < plan.shapes.size(); ++s)
    shapes.push_back(shape_json(plan.shapes[s], planning.rankings[s]));
  return {{"version", 1},
          {"build", plan.build},
          {"recipe", plan.recipe.name},
          {"cluster", plan.cluster},
          {"num_ranks", plan.ranks.size()},
          {"peak_flops_per_rank", plan.peak_flops_per_rank},
          {"figures", planning.figures},
          {"documents", planning.documents},
          {"notes", planning.notes},
          {"order", order_text()},
          {"shapes", std::move(shapes)}};
}

}  // namespace ptrain::plan
