#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

// Part of RankCheck: offloaded state is there when OPTIMIZER changes it and taken away once after
// that, and no two groups are in one buffer of the ring. Each call is one action, in order, with
// what it knows to be finished: positions by lane, counted from 1, its own included. Each returns
// what is broken, or nothing.
class RingCheck {
 public:
  using Broken = std::optional<std::string>;
  using Clock = std::array<int, 6>;

  RingCheck(const model::Architecture& architecture, const mesh::Layout& layout);
  Broken fetch(const Action& action, const Clock& now);
  Broken update(const Action& action, const Clock& now);
  Broken offload(const Action& action, const Clock& now);
  Broken end() const;

 private:
  enum class Stage { kAway, kFetched, kUpdated, kOffloaded };
  struct Group {
    Stage stage = Stage::kAway;
    int fetched = 0;  // position in the lane of copies in
    int updated = 0;  // position in the compute lane
  };
  struct Buffer {
    int group = -1;     // whose state is in it, or on its way
    int offloaded = 0;  // position of the last OFFLOAD from it in the lane of copies out
  };

  Broken well_formed(const Action& action) const;
  Group& group(const Action& action) { return groups_[static_cast<std::size_t>(action.group)]; }
  int buffer_of(int group) const { return buffers_[static_cast<std::size_t>(group)]; }
  Buffer& buffer(const Action& action) {
    return ring_[static_cast<std::size_t>(buffer_of(action.group))];
  }

  bool is_on_;
  std::vector<int> buffers_;  // by group
  std::vector<Group> groups_;
  std::vector<Buffer> ring_;
};

}  // namespace ptrain::program
