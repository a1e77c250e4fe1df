#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/program/action.h"

namespace ptrain::program {

// Actions on their way through the passes. An action keeps its id while others are put between;
// only finish() turns ids into positions.
class Draft {
 public:
  Draft() = default;
  explicit Draft(std::vector<Action> actions)
      : actions_(std::move(actions)), next_id_(static_cast<int>(actions_.size())) {}

  // Adds an action of this draft under a new id, which is returned.
  int add(Action action) {
    action.id = next_id_++;
    actions_.push_back(std::move(action));
    return actions_.back().id;
  }

  // An empty draft that goes on counting ids, with room for the actions of this one and some more.
  Draft successor() const;
  // Takes an action over from the draft before, id and all.
  void keep(Action action) { actions_.push_back(std::move(action)); }

  std::vector<Action>& actions() { return actions_; }
  const std::vector<Action>& actions() const { return actions_; }
  int num_ids() const { return next_id_; }

  // The actions with positions as ids. Every id that an action waits for must be there.
  std::vector<Action> finish() &&;

 private:
  std::vector<Action> actions_;
  int next_id_ = 0;
};

}  // namespace ptrain::program
