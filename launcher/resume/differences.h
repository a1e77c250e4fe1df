#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/recipe.h"

namespace ptrain::resume {

// What a difference between two recipes means for a run that goes on with the second.
enum class Change {
  kFree,       // where and how it runs
  kAllowed,    // what is trained, or how: only with --allow-changes
  kForbidden,  // the saved state would mean something else
};

struct Difference {
  std::string field;        // model.hidden_size, shapes.1.steps
  std::string before, now;  // "" where there is none
  Change change = Change::kFree;
  bool operator==(const Difference&) const = default;
};

// Every field in which two resolved recipes differ.
std::vector<Difference> differences(const recipe::Recipe& before, const recipe::Recipe& now);

// "optimizer.eps: 1e-08 -> 1e-06"
std::string to_string(const Difference& difference);

// Errors (kUsage) list all differences that may not be, or may be only with --allow-changes.
Status permit(std::span<const Difference> differences, bool allow_changes);

}  // namespace ptrain::resume
