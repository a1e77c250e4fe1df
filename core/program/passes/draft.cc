#include "core/program/passes/draft.h"

#include <algorithm>

namespace ptrain::program {

Draft Draft::successor() const {
  Draft next;
  next.next_id_ = next_id_;
  next.actions_.reserve(2 * actions_.size() + 16);
  return next;
}

std::vector<Action> Draft::finish() && {
  std::vector<int> position(static_cast<std::size_t>(next_id_));
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    position[static_cast<std::size_t>(actions_[i].id)] = static_cast<int>(i);
  }
  for (Action& action : actions_) {
    action.id = position[static_cast<std::size_t>(action.id)];
    for (int& id : action.after) id = position[static_cast<std::size_t>(id)];
    std::sort(action.after.begin(), action.after.end());
  }
  return std::move(actions_);
}

}  // namespace ptrain::program
