#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "engine/comm/communicator.h"
#include "engine/execute/sharing.h"

namespace ptrain::execute {

// The groups of one rank along every axis of a layout, one communicator for each lane that uses
// one.
class Groups {
 public:
  // Collective over `world`, which must live longer. `part`: the model as this rank holds it.
  Groups(comm::Communicator& world, const mesh::Layout& layout, const model::Architecture& part);

  const Communicators& communicators() const { return communicators_; }
  void close();  // collective

 private:
  // Where this rank is in one of the groups of an axis.
  struct Seat {
    int color = 0;  // which group; < 0: in none
    int key = 0;    // its place there
  };
  comm::Communicator* make(const std::string& name, Seat seat);
  void make_dense();
  void make_contexts();
  void make_vocabulary(const model::Architecture& part);
  void make_rows();
  void make_experts();
  void make_tied(const model::Architecture& part);
  void make_neighbours(const model::Architecture& part);
  Seat expert_seat(int mesh::ExpertCoordinates::*axis) const;
  template <class Remove>
  int color_without(Remove remove) const;

  comm::Communicator& world_;
  mesh::Layout layout_;
  mesh::Coordinates place_;
  std::vector<std::unique_ptr<comm::Communicator>> owned_;
  Communicators communicators_;
};

}  // namespace ptrain::execute
