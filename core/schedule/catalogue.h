#pragma once

#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/schedule/placement.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// How many stages a rank may hold: least, least + step, ... most (0: any number).
struct VirtualRule {
  int least = 1;
  int most = 1;
  int step = 1;
  bool allows(int number) const;
  int nearest(int number) const;  // that it allows
  bool operator==(const VirtualRule&) const = default;
};

// A schedule that can be asked for by name.
struct Entry {
  std::string_view name;
  int num_copies = 1;  // of the weights
  VirtualRule num_virtual;
  std::string_view constraint;  // on p ranks and m micro-batches; empty: none
  Placement placement = Placement::kLoop;
  std::string_view reference;
  Result<Schedule> (*generate)(const Problem&) = nullptr;
  bool has_groups = false;  // Problem::group may be given
};

std::span<const Entry> catalogue();

// The entry of NAME or NAME_2bp; null: there is none.
const Entry* find(std::string_view name);

// NAME, or NAME_2bp: every weight gradient of it after all the rest. Refuses, with the nearest that
// works, what the schedule cannot do, and one that holds more stashes than the problem's cap.
Result<Schedule> make(std::string_view name, const Problem& problem);

}  // namespace ptrain::schedule
