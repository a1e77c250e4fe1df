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
// axes (axes.h), cut short where a rule (rules.h) objects, so that a mix of degrees that cannot be
// is listed once, without its micro-batches and options.
Enumeration enumerate(const Space& space);

// The same in two steps: layouts of which the degrees are set alone, and what may become of one.
Enumeration enumerate_degrees(const Space& space);
Enumeration enumerate_options(const Space& space, const mesh::Layout& degrees);

}  // namespace ptrain::plan
