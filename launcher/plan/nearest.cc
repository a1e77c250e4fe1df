#include "launcher/plan/nearest.h"

#include <limits>
#include <queue>
#include <utility>

#include "launcher/plan/grounds.h"
#include "launcher/plan/refusals.h"

namespace ptrain::plan {

namespace {

class Nearest {
 public:
  Nearest(const SearchInput& input, recipe::Offload offload, std::int64_t work)
      : grounds_(input, offload), most_work_(work) {}

  Result<std::optional<Rejected>> find() && {
    expand(grounds_.start());
    while (!open_.empty() && open_.top().least < least_ && grounds_.work() < most_work_) {
      const Beginning next = open_.top();
      open_.pop();
      if (next.level != kLastLevel)
        expand(next);
      else
        PTRAIN_CHECK(count(next.layout));
    }
    return std::move(found_);
  }

 private:
  void expand(const Beginning& beginning) {
    const Level level = next_level(beginning.level);
    for (mesh::Layout& layout : grounds_.next(beginning).legal) {
      const auto bytes = static_cast<double>(grounds_.bounds().of(layout, level).bytes);
      if (bytes < least_) open_.push({.least = bytes, .level = level, .layout = std::move(layout)});
    }
  }

  Status count(const mesh::Layout& layout) {
    if (grounds_.objection_to_schedule(layout)) return {};
    if (grounds_.work() + grounds_.bounds().work_to_simulate(layout) > most_work_) return {};
    PTRAIN_TRY(const Candidate candidate, grounds_.simulate(layout, 0));
    const std::int64_t bytes = program::total_bytes(candidate.bytes);
    if (static_cast<double>(bytes) >= least_) return {};
    least_ = static_cast<double>(bytes);
    found_ = too_large(layout, bytes, grounds_.memory(), false);
    return {};
  }

  Grounds grounds_;
  const std::int64_t most_work_;
  double least_ = std::numeric_limits<double>::infinity();  // bytes, of what was counted
  std::optional<Rejected> found_;
  std::priority_queue<Beginning> open_;
};

}  // namespace

Result<std::optional<Rejected>> nearest_to_fit(const SearchInput& input, recipe::Offload offload,
                                               std::int64_t work) {
  return Nearest(input, offload, work).find();
}

}  // namespace ptrain::plan
