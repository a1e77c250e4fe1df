#include "core/program/pipeline.h"

#include <fmt/format.h>

#include "core/base/error_line.h"
#include "core/mesh/part.h"
#include "launcher/plan/rules/rules.h"
#include "launcher/plan/stages.h"

namespace ptrain::plan {
namespace {

Objection from(const char* reason, const Error& error, const mesh::Layout& layout) {
  return {reason, error_line(error), static_cast<double>(layout.micro_batch)};
}

}  // namespace

std::optional<Objection> every_rank_has_layers(const mesh::Layout& layout, const Space& space) {
  if (space.architecture == nullptr) return std::nullopt;
  const auto num_layers = std::ssize(space.architecture->layers);
  if (layout.pp <= num_layers) return std::nullopt;
  return Objection{"more pipeline ranks than layers",
                   fmt::format("pp is {}, but the model has {} layers, embedding and head "
                               "counted; pp may be {} at most",
                               layout.pp, num_layers, num_layers),
                   static_cast<double>(layout.pp - num_layers)};
}

std::optional<Objection> stages_fit(const mesh::Layout& layout, const Space& space) {
  if (layout.num_stages() == 1) return std::nullopt;
  const auto layers = stage_layers_of(layout, space);
  if (layers) return std::nullopt;
  return from("the layers do not make the stages", layers.error(), layout);
}

std::optional<Objection> stage_recompute_fits(const mesh::Layout& layout, const Space& space) {
  const recipe::Parallel& fixed = space.fixed;
  if (fixed.stage_recompute.empty()) return std::nullopt;
  const char* reason = "what stages compute again does not suit the layout";
  if (fixed.recompute)
    return Objection{reason, "recompute and stage_recompute are both given: leave one out", 1};
  if (layout.num_stages() == 1)
    return Objection{reason, "there is one stage: give recompute in its place", 1e9};
  const auto all = stage_recompute_from(fixed.stage_recompute, layout.num_stages());
  if (all) return std::nullopt;
  return from(reason, all.error(), layout);
}

// Of the model too: its streams, and a tied head.
std::optional<Objection> stage_dtype_fits(const mesh::Layout& layout, const Space& space) {
  if (space.fixed.stage_dtype.empty() || space.architecture == nullptr) return std::nullopt;
  const char* reason = "the dtypes of stages do not suit the layout";
  if (layout.num_stages() == 1)
    return Objection{reason, "there is one stage: give precision in its place", 1e9};
  const auto words = stage_dtypes_from(space.fixed.stage_dtype, layout.num_stages());
  if (!words) return from(reason, words.error(), layout);
  mesh::Layout alone;
  alone.layer_dtypes = layout.layer_dtypes;
  const auto part = mesh::part_of(*space.architecture, alone, 0);
  if (part) return std::nullopt;
  return from(reason, part.error(), layout);
}

std::optional<Objection> vocabulary_spreads(const mesh::Layout& layout, const Space& space) {
  const bool spreads = layout.spread_embedding || layout.spread_head;
  if (!spreads || space.architecture == nullptr) return std::nullopt;
  mesh::Layout alone;
  alone.pp = layout.pp;
  alone.tp = layout.tp;
  alone.spread_embedding = layout.spread_embedding;
  alone.spread_head = layout.spread_head;
  alone.schedule = "1f1b";  // where the stages lie does not matter
  const auto part = mesh::part_of(*space.architecture, alone, 0);
  if (part) return std::nullopt;
  return from("embedding or head cannot be spread over all stages", part.error(), layout);
}

std::optional<Objection> schedule_fits(const mesh::Layout& layout, const Space& space) {
  const bool is_asked = layout.num_stages() > 1 && !space.schedules_later;
  if (!is_asked || space.architecture == nullptr) return std::nullopt;
  const auto num_layers = static_cast<int>(space.architecture->layers.size());
  const auto pipeline = program::pipeline_of(layout, num_layers, true);
  if (pipeline) return std::nullopt;
  return from("the schedule does not suit the layout", pipeline.error(), layout);
}

}  // namespace ptrain::plan
