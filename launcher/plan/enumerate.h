#pragma once

#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "launcher/plan/rules/rules.h"
#include "launcher/plan/space.h"

namespace ptrain::plan {

// A layout that is out, and why: as in Objection. Or the nearest of `count` that are out for one
// reason, where listing all would fill the memory.
struct Rejected {
  mesh::Layout layout;
  std::string reason;
  std::string detail;
  double excess = 0;
  bool is_bound = false;    // the excess is the least that it may be
  bool is_nearest = false;  // of all for this reason: what nearest_to_fit (nearest.h) found
  Shortage shortage = Shortage::kNone;
  int count = 1;
};

// That layout, by a rule's objection to it.
Rejected rejected_for(const mesh::Layout& layout, Objection objection);

struct Enumeration {
  std::vector<mesh::Layout> legal;
  std::vector<Rejected> rejected;
};

// Every layout of the space, each either legal or rejected, in a fixed order: all values of all
// axes (axes.h), cut short where a rule (rules.h) objects, so that a choice of degrees that cannot
// be is listed once, without its micro-batches and options.
Enumeration enumerate(const Space& space);

// The same in steps: with no axis set, and what becomes of a layout by setting those from `begin`
// up to `end`.
mesh::Layout without_axes(const Space& space);
Enumeration enumerate_axes(const Space& space, const mesh::Layout& before, std::size_t begin,
                           std::size_t end);

}  // namespace ptrain::plan
