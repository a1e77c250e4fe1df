#include "launcher/plan/schedules.h"

#include <algorithm>

namespace ptrain::plan {

namespace {

constexpr PlannedSchedule kPlanned[] = {
    {"1f1b", 1, true}, {"zb_h1", 1, false}, {"interleaved_1f1b", 2, true}, {"zb_v", 2, false}};

}  // namespace

std::span<const PlannedSchedule> planned_schedules() { return kPlanned; }

const PlannedSchedule* find_planned(std::string_view name) {
  const auto found = std::ranges::find(kPlanned, name, &PlannedSchedule::name);
  return found == std::end(kPlanned) ? nullptr : &*found;
}

}  // namespace ptrain::plan
