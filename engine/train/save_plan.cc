#include "engine/train/save_plan.h"

#include <utility>

#include "core/mesh/part.h"
#include "core/model/optimizer_state.h"
#include "core/model/slice.h"
#include "engine/base/engine_error.h"

namespace ptrain::train {
namespace {

using checkpoint::Items;
using checkpoint::TensorItem;
using model::ParameterSpec;

dcp::Box box_of(const ParameterSpec& parameter) {
  return {model::offsets_of(parameter), parameter.shape};
}

const ParameterSpec& parameter_of(const model::Architecture& part, const mesh::ShardRun& run) {
  return part.parameters[static_cast<std::size_t>(run.parameter)];
}

// Of one shard of a group. Steps come behind everything else.
void add_shard(const model::Architecture& part, const std::vector<mesh::ShardRun>& runs,
               Items& items, Items& steps) {
  const mesh::StatePlan state = mesh::plan_state(part, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ParameterSpec& parameter = parameter_of(part, runs[i]);
    if (!parameter.counts) continue;
    const auto keys = own_keys(parameter);
    items.tensors.push_back(parameter_item(keys, parameter, part.dtype, runs[i]));
    for (const mesh::StatePiece& piece : state.pieces[i])
      items.tensors.push_back(state_item(keys, parameter, piece));
    if (saves_step(parameter, runs[i])) steps.tensors.push_back(step_item(parameter));
  }
}

}  // namespace

dcp::ParameterSource own_keys(const ParameterSpec& parameter) {
  return {"model." + parameter.name, "optim.state." + parameter.name, 0};
}

TensorItem parameter_item(const dcp::ParameterSource& keys, const ParameterSpec& parameter,
                          DType dtype, const mesh::ShardRun& run) {
  TensorItem item{keys.key, dtype, model::whole_shape_of(parameter), run.begin, run.end};
  item.head_rows = keys.head_rows;
  item.part = box_of(parameter);
  return item;
}

// State that has a value for each block of elements does not know the rows of heads, and is never
// of a part.
TensorItem state_item(const dcp::ParameterSource& keys, const ParameterSpec& parameter,
                      const mesh::StatePiece& piece) {
  TensorItem item{keys.state + "." + piece.tensor.name, piece.tensor.dtype,
                  piece.tensor.shape(parameter), piece.begin, piece.begin + piece.values};
  if (piece.tensor.block > 1) return item;
  item.shape = model::whole_shape_of(parameter);
  item.part = box_of(parameter);
  item.head_rows = keys.head_rows;
  return item;
}

TensorItem step_item(const ParameterSpec& parameter) {
  return {own_keys(parameter).state + ".step", DType::kFloat32, {}, 0, 1};
}

bool saves_step(const ParameterSpec& parameter, const mesh::ShardRun& run) {
  return parameter.counts && model::counts_steps(parameter.rule) &&
         model::begins_whole(parameter, run.begin);
}

const SavePlan::Part& SavePlan::part_of(int rank) {
  const mesh::Coordinates dense = mesh::coordinates_of(layout_, rank);
  const mesh::ExpertCoordinates experts = mesh::expert_coordinates_of(layout_, rank);
  Part& part = parts_[{dense.pp, dense.tp, experts.ep, experts.etp}];
  if (part.buffers.empty()) {
    part.architecture = value_or_throw(mesh::part_of(whole_, layout_, rank));
    part.buffers = mesh::plan_buffers(part.architecture, layout_);
  }
  return part;
}

Items SavePlan::items_of(int rank) {
  const Part& part = part_of(rank);
  Items items, steps;
  for (const mesh::BufferPlan& buffer : part.buffers) {
    const auto& group = part.architecture.groups[static_cast<std::size_t>(buffer.group)];
    if (!mesh::is_first_replica(group, layout_, rank)) continue;
    const int shard = mesh::shard_rank_of(group, layout_, rank);
    add_shard(part.architecture, buffer.runs(shard), items, steps);
  }
  std::move(steps.tensors.begin(), steps.tensors.end(), std::back_inserter(items.tensors));
  return items;
}

}  // namespace ptrain::train
