#include "launcher/plan/search_space.h"

#include <utility>

#include "launcher/plan/evaluate.h"
#include "launcher/plan/order.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;

constexpr std::size_t kKeptParts = 8;

Space space_of(const SearchInput& input, recipe::Offload offload, Cuts& cuts,
               std::map<int, std::vector<int>>& balanced) {
  Space space;
  space.num_ranks = input.placement.num_ranks;
  space.rows = input.shape.global_batch_tokens / input.shape.sequence;
  space.fixed = input.fixed;
  space.shared_window = input.placement.shares_memory();
  space.offload = offload;
  space.architecture = &input.architecture;
  space.sequence = input.shape.sequence;
  space.schedule_csv = input.schedule_csv;
  space.on_gpus = input.placement.on_gpus;
  space.cuts = &cuts;
  space.balanced = &balanced;
  space.schedules_later = true;
  return space;
}

// What the parts of the model follow from.
std::string cut_of(const Layout& layout) {
  Layout cut = layout;
  cut.zero = 1;
  cut.micro_batch = cut.num_micro_batches = 1;
  cut.recompute = recipe::Recompute::kNone;
  cut.stage_recompute.clear();
  return mesh::to_string(cut);
}

}  // namespace

bool PartialLayout::operator<(const PartialLayout& other) const {
  if (least != other.least) return least > other.least;
  if (level != other.level) return level < other.level;
  return is_plainer(other.layout, layout);
}

SearchSpace::SearchSpace(const SearchInput& input, recipe::Offload offload)
    : input_(input),
      memory_(rank_memory(input)),
      cuts_(sample_of(input.architecture)),
      space_(space_of(input, offload, cuts_, balanced_)),
      bounds_(input, space_, cuts_, memory_) {}

Enumeration SearchSpace::next(const PartialLayout& partial) {
  Enumeration all = enumerate_axes(space_, partial.layout, num_axes_of(partial.level),
                                   num_axes_of(next_level(partial.level)));
  work_ += std::ssize(all.legal) + std::ssize(all.rejected);
  return all;
}

std::optional<Objection> SearchSpace::objection_to_schedule(const Layout& layout) const {
  Space asked = space_;
  asked.schedules_later = false;
  Layout counted = layout;
  counted.num_micro_batches = counted_micro_batches(layout);
  return schedule_fits(counted, asked);
}

Result<const std::vector<Part>*> SearchSpace::parts_for(const Layout& layout) {
  const std::string cut = cut_of(layout);
  if (const auto known = parts_.find(cut); known != parts_.end()) return &known->second;
  if (parts_.size() >= kKeptParts) parts_.clear();
  PTRAIN_TRY(std::vector<Part> parts, parts_of(input_.architecture, layout));
  work_ += work_to_cut(std::ssize(input_.architecture.parameters) * 2);
  return &parts_.emplace(cut, std::move(parts)).first->second;
}

Result<Candidate> SearchSpace::simulate(const Layout& layout, std::int64_t memory) {
  PTRAIN_TRY(const std::vector<Part>* parts, parts_for(layout));
  Candidate candidate;
  candidate.layout = layout;
  work_ += bounds_.work_to_simulate(layout);
  PTRAIN_CHECK(simulate_candidate(input_, *parts, memory, candidate));
  return candidate;
}

}  // namespace ptrain::plan
