#pragma once

#include <string>
#include <vector>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "core/program/validate.h"
#include "tests/support/compile_world.h"

namespace ptrain::support {

// The programs of all ranks, each of its own part of a model.
class WorldOfParts {
 public:
  WorldOfParts(const model::Architecture& whole, const mesh::Layout& layout,
               program::Purpose purpose = program::Purpose::kTrain)
      : layout_(layout) {
    for (int rank = 0; rank < layout.num_ranks(); ++rank)
      parts_.push_back(*mesh::part_of(whole, layout, rank));
    for (int rank = 0; rank < layout.num_ranks(); ++rank)
      programs_.push_back(
          *program::compile({parts_[static_cast<std::size_t>(rank)], layout_, "s", purpose}, rank));
  }

  program::Program& program(std::size_t rank) { return programs_[rank]; }
  // Without the header line.
  std::string text(std::size_t rank) const {
    const std::string text = to_text(programs_[rank]);
    return text.substr(text.find('\n') + 1);
  }
  // What the validator says; empty: nothing.
  std::string check(program::Queues queues = program::Queues::kByLane) const {
    std::vector<const program::Program*> programs;
    std::vector<const model::Architecture*> parts;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      programs.push_back(&programs_[rank]);
      parts.push_back(&parts_[rank]);
    }
    const auto status = program::validate(programs, parts, layout_, queues);
    return status ? "" : status.error().message;
  }

 private:
  mesh::Layout layout_;
  std::vector<model::Architecture> parts_;
  std::vector<program::Program> programs_;
};

}  // namespace ptrain::support
