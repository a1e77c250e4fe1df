#include "launcher/plan/nearest.h"

#include <limits>
#include <queue>
#include <utility>

#include "launcher/plan/refusals.h"
#include "launcher/plan/search_space.h"

namespace ptrain::plan {

namespace {

class Nearest {
 public:
  Nearest(const SearchInput& input, recipe::Offload offload, std::int64_t work)
      : space_(input, offload), most_work_(work) {}

  Result<std::optional<Rejected>> find() && {
    expand(space_.start());
    while (!open_.empty() && open_.top().least < least_ && space_.work() < most_work_) {
      const PartialLayout next = open_.top();
      open_.pop();
      if (next.level != kLastLevel)
        expand(next);
      else
        PTRAIN_CHECK(count(next.layout));
    }
    return std::move(found_);
  }

 private:
  void expand(const PartialLayout& partial) {
    const Level level = next_level(partial.level);
    for (mesh::Layout& layout : space_.next(partial).legal) {
      const auto bytes = static_cast<double>(space_.bounds().of(layout, level).bytes);
      if (bytes < least_) open_.push({.least = bytes, .level = level, .layout = std::move(layout)});
    }
  }

  Status count(const mesh::Layout& layout) {
    if (space_.objection_to_schedule(layout)) return {};
    if (space_.work() + space_.bounds().work_to_simulate(layout) > most_work_) return {};
    PTRAIN_TRY(const Candidate candidate, space_.simulate(layout, 0));
    const std::int64_t bytes = program::total_bytes(candidate.bytes);
    if (static_cast<double>(bytes) >= least_) return {};
    least_ = static_cast<double>(bytes);
    found_ = too_large(layout, bytes, space_.memory(), false);
    return {};
  }

  SearchSpace space_;
  const std::int64_t most_work_;
  double least_ = std::numeric_limits<double>::infinity();  // bytes, of what was counted
  std::optional<Rejected> found_;
  std::priority_queue<PartialLayout> open_;
};

}  // namespace

Result<std::optional<Rejected>> nearest_to_fit(const SearchInput& input, recipe::Offload offload,
                                               std::int64_t work) {
  return Nearest(input, offload, work).find();
}

}  // namespace ptrain::plan
