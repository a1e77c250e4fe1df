#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "launcher/plan/space.h"

namespace ptrain::plan {

// What a layout has too little of, where that tells what would help.
enum class Shortage { kNone, kRankMemory, kNodeMemory, kRows, kTime };

// Why a layout is out. `detail` says it in this layout's numbers; `excess` orders the layouts of
// one reason: the smallest came closest.
struct Objection {
  std::string reason;
  std::string detail;
  double excess = 0;
  Shortage shortage = Shortage::kNone;
};

// Whether ranks of these degrees can have parts of the model, were there one stage. Errors: those
// of mesh::part_of.
Status can_be_cut(const mesh::Layout& degrees, const Space& space);

// What makes a layout illegal. It is asked once the axis `after` is set, and may read that axis and
// those before it: what it forbids is not looked into further. A file holds the rules of one
// matter.
struct Rule {
  std::string_view after;
  std::optional<Objection> (*check)(const mesh::Layout& layout, const Space& space);
};

std::optional<Objection> is_available(const mesh::Layout& layout, const Space& space);
std::optional<Objection> tensor_divides(const mesh::Layout& layout, const Space& space);
std::optional<Objection> tokens_divide(const mesh::Layout& layout, const Space& space);
std::optional<Objection> every_rank_has_layers(const mesh::Layout& layout, const Space& space);
// Once `schedule` is set, which sets the stages too.
std::optional<Objection> stages_fit(const mesh::Layout& layout, const Space& space);
std::optional<Objection> schedule_fits(const mesh::Layout& layout, const Space& space);
std::optional<Objection> stage_recompute_fits(const mesh::Layout& layout, const Space& space);
std::optional<Objection> stage_dtype_fits(const mesh::Layout& layout, const Space& space);
// A pipeline, and a model whose embedding or head all its ranks can share.
std::optional<Objection> vocabulary_spreads(const mesh::Layout& layout, const Space& space);
// Tokens of a row, heads, and models that ranks with a part of a row do not run.
std::optional<Objection> context_divides(const mesh::Layout& layout, const Space& space);
std::optional<Objection> rows_divide(const mesh::Layout& layout, const Space& space);
// Experts and ranks over ep, columns of experts over etp.
std::optional<Objection> experts_divide(const mesh::Layout& layout, const Space& space);
// Asked as soon as a choice is made, so that nothing is looked into that nobody wants.
std::optional<Objection> degrees_are_as_fixed(const mesh::Layout& layout, const Space& space);
std::optional<Objection> zero_is_as_fixed(const mesh::Layout& layout, const Space& space);
std::optional<Objection> micro_batch_is_as_fixed(const mesh::Layout& layout, const Space& space);
std::optional<Objection> pipeline_is_as_fixed(const mesh::Layout& layout, const Space& space);
std::optional<Objection> recompute_is_as_fixed(const mesh::Layout& layout, const Space& space);
// All of it.
std::optional<Objection> is_as_fixed(const mesh::Layout& layout, const Space& space);

std::span<const Rule> rules();

}  // namespace ptrain::plan
