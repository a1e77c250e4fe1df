#pragma once

#include <array>
#include <map>
#include <utility>

#include "core/dcp/import.h"
#include "core/mesh/buffer_plan.h"
#include "core/mesh/layout.h"
#include "core/mesh/state_plan.h"
#include "core/model/architecture.h"
#include "engine/checkpoint/item.h"

namespace ptrain::train {

// What ptrain itself calls a parameter and its optimizer state.
dcp::ParameterSource own_keys(const model::ParameterSpec& parameter);

// Items without data: a run of a parameter; of one tensor of its optimizer state; the step of its
// moments, a float32 scalar beside each parameter as torch.optim keeps it.
checkpoint::TensorItem parameter_item(const dcp::ParameterSource& keys,
                                      const model::ParameterSpec& parameter, DType dtype,
                                      const mesh::ShardRun& run);
checkpoint::TensorItem state_item(const dcp::ParameterSource& keys,
                                  const model::ParameterSpec& parameter,
                                  const mesh::StatePiece& piece);
checkpoint::TensorItem step_item(const model::ParameterSpec& parameter);
// The rank that has the parameter's first element saves its step.
bool saves_step(const model::ParameterSpec& parameter, const mesh::ShardRun& run);

// What each rank of a layout saves, from the layout alone, so that nobody has to be asked.
class SavePlan {
 public:
  SavePlan(model::Architecture whole, mesh::Layout layout)
      : whole_(std::move(whole)), layout_(std::move(layout)) {}

  // The tensors of state_items on that rank, without data.
  checkpoint::Items items_of(int rank);

 private:
  // Ranks that hold the same parts of parameters differ only in their shards.
  struct Part {
    model::Architecture architecture;
    std::vector<mesh::BufferPlan> buffers;
  };
  const Part& part_of(int rank);

  model::Architecture whole_;
  mesh::Layout layout_;
  std::map<std::array<int, 4>, Part> parts_;  // by pp, tp, ep, etp
};

}  // namespace ptrain::train
