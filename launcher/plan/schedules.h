#pragma once

#include <span>
#include <string_view>

namespace ptrain::plan {

// A schedule that the planner looks into by itself, where the recipe names none. What it knows of
// it spares it from simulating whole steps.
struct PlannedSchedule {
  std::string_view name;
  int num_virtual = 1;
  // Each rank ends with the whole backward of a stage. Elsewhere gradients of weights may follow
  // while earlier stages go on.
  bool ends_with_backward = false;
};

// By stages a rank: the first of each is what most others are measured by, the second has shorter
// bubbles and splits backwards. All of them repeat: once a pipeline is full it does the same again
// for every so many micro-batches as it has ranks.
std::span<const PlannedSchedule> planned_schedules();

// Null: another schedule, or none.
const PlannedSchedule* find_planned(std::string_view name);

}  // namespace ptrain::plan
