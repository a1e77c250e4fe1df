#pragma once

#include <memory>
#include <optional>

#include "core/model/architecture.h"
#include "core/program/action.h"
#include "core/run/plan.h"
#include "engine/base/arena.h"
#include "engine/comm/communicator.h"
#include "engine/execute/executor.h"
#include "engine/execute/groups.h"

namespace ptrain::train {

// One rank's engine for one training shape: model, layout, groups of ranks, programs, executor.
class ShapeRun {
 public:
  // Collective over the world. EngineError: a plan that does not suit this world or build, or no
  // room in `offload_folder` for state that is to be offloaded there.
  ShapeRun(const run::Plan& plan, std::size_t shape, comm::Communicator& world,
           const std::string& offload_folder);
  ~ShapeRun();
  ShapeRun(const ShapeRun&) = delete;
  ShapeRun& operator=(const ShapeRun&) = delete;

  // Sets parameters to their initial values; the same for any layout.
  void initialise(std::uint64_t seed);

  // The whole model, and what this rank holds of it.
  const model::Architecture& whole() const { return whole_; }
  const model::Architecture& architecture() const { return architecture_; }
  const mesh::Layout& layout() const { return plan_.shapes[shape_].layout; }
  const recipe::Shape& shape() const { return plan_.recipe.shapes[shape_]; }
  int data_rank() const;
  const program::Program& train_program() const { return train_program_; }
  const program::Program& evaluate_program() const { return evaluate_program_; }
  execute::Executor& executor() { return *executor_; }
  Arena& arena() { return arena_; }

  // Closes the communicators of this shape. Collective; before the destructor.
  void close();

 private:
  void check_plan() const;

  const run::Plan& plan_;
  std::size_t shape_;
  comm::Communicator& world_;
  model::Architecture whole_, architecture_;
  Arena arena_;
  std::optional<execute::Groups> groups_;
  program::Program train_program_, evaluate_program_;
  std::unique_ptr<execute::Executor> executor_;
};

}  // namespace ptrain::train
