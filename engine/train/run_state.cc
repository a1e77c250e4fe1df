#include "engine/train/run_state.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/dcp/import.h"
#include "core/recipe/json.h"
#include "core/recipe/shapes.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/train/optimizer_settings.h"
#include "engine/train/save_plan.h"

namespace ptrain::train {
namespace {

using checkpoint::Items;
using checkpoint::TensorItem;
using checkpoint::ValueItem;

void add_run(const RankState& state, const dcp::ParameterSource& keys, state::GroupBuffer& group,
             const mesh::ShardRun& run, Items& items) {
  const auto& parameter = state.architecture.parameters[static_cast<std::size_t>(run.parameter)];
  const Tensor master = group.master(run);
  items.tensors.push_back(parameter_item(keys, parameter, master.dtype, run));
  items.tensors.back().data = master.data;
  if (keys.state.empty()) return;
  for (const mesh::StatePiece& piece : group.state_pieces(run)) {
    TensorItem& kept = items.tensors.emplace_back(state_item(keys, parameter, piece));
    if (state.offload == nullptr)
      kept.data = group.state(piece).data;
    else
      kept.bring = [offload = state.offload, index = group.plan().group, offset = piece.offset](
                       bool writes) { return offload->hold(index, writes) + offset; };
  }
}

// Which runs are wanted: all that are held, or those that a checkpoint takes from this rank.
enum class Runs { kHeld, kCounted };

// `keys_of(parameter)`: what the checkpoint calls it.
template <class KeysOf>
Items tensors_of(const RankState& state, Runs runs, KeysOf keys_of) {
  device::synchronize();  // from here on host code reads or fills them
  Items items;
  for (auto& group : state.groups)
    for (const auto& run : group.runs()) {
      if (runs == Runs::kCounted && !group.counts(run)) continue;
      const auto& parameter =
          state.architecture.parameters[static_cast<std::size_t>(run.parameter)];
      add_run(state, keys_of(parameter), group, run, items);
    }
  return items;
}

void add_optimizer_steps(const RankState& state, float& step, Items& items) {
  for (auto& group : state.groups)
    for (const auto& run : group.runs()) {
      const auto& parameter =
          state.architecture.parameters[static_cast<std::size_t>(run.parameter)];
      if (!group.counts(run) || !saves_step(parameter, run)) continue;
      items.tensors.push_back(step_item(parameter));
      items.tensors.back().data = &step;
    }
}

void add_values(const RankState& state, const Progress& progress, double learning_rate,
                Items& items) {
  const recipe::Recipe& recipe = state.plan.recipe;
  for (const auto& parameter : state.whole.parameters)
    for (const auto& [name, value] : optimizer_settings(parameter, recipe.optimizer, learning_rate))
      items.values.push_back({"optim.param_groups." + parameter.name + "." + name, value});
  items.values.push_back({"train.step", progress.step});
  items.values.push_back({"train.tokens", progress.tokens_total});
  items.values.push_back(
      {"train.shape", recipe.shapes[recipe::shape_after(recipe, progress.step).index].name});
  items.values.push_back({"data.position", data::to_json_text(progress.position)});
  items.values.push_back({"data.train_hash", progress.train_hash});
  items.values.push_back({"data.validation_hash", progress.validation_hash});
  items.values.push_back({"ptrain.version", state.plan.build});
  items.values.push_back({"ptrain.recipe", recipe::to_json(recipe).dump()});
}

Items progress_values() {
  Items items;
  for (const char* key :
       {"train.step", "train.tokens", "data.position", "data.train_hash", "data.validation_hash"})
    items.values.push_back({key, nullptr});
  return items;
}

Progress progress_from(const std::vector<ValueItem>& values) {
  auto value = [&](const char* key) -> const nlohmann::json& {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const ValueItem& item) { return item.key == key; });
    PT_CHECK(found != values.end());
    return found->value;
  };
  try {
    return {value("train.step").get<std::int64_t>(), value("train.tokens").get<std::int64_t>(),
            data::position_from_json_text(value("data.position").get<std::string>()),
            value("data.train_hash").get<std::string>(),
            value("data.validation_hash").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw EngineError(
        ExitCode::kUnusable,
        std::string("the checkpoint's training state cannot be read: ") + error.what(),
        "resume from an older checkpoint of the run");
  }
}

}  // namespace

Items state_items(const RankState& state, const Progress& progress, double learning_rate,
                  float& optimizer_step) {
  fault::point("save.items");
  Items items = tensors_of(state, Runs::kCounted, own_keys);
  add_optimizer_steps(state, optimizer_step, items);
  fault::point("save.values");
  add_values(state, progress, learning_rate, items);
  return items;
}

checkpoint::ItemsOf items_of_ranks(const RankState& state) {
  if (state.world.rank() > 0) return {};
  const auto plan = std::make_shared<SavePlan>(state.whole, state.layout);
  return [plan](int rank) { return plan->items_of(rank); };
}

Start find_start(const run::Plan& plan, const run::Directory& directory, comm::Communicator& world,
                 checkpoint::Check check) {
  Start start;
  auto newest = checkpoint::open_newest(directory.checkpoints(), world, check);
  start.source = std::move(newest.source);
  start.damaged = std::move(newest.damaged);
  if (start.source) {
    start.progress = progress_from(start.source->load(progress_values()));
  } else if (!plan.origin.checkpoint.empty()) {
    start.is_own = false;
    start.source.emplace(plan.origin.checkpoint, world);
    if (plan.origin.data) start.progress = progress_from(start.source->load(progress_values()));
    start.progress.step = plan.origin.step;
    start.progress.tokens_total = plan.origin.tokens;
  }
  return start;
}

void load_state(const RankState& state, const Start& start) {
  const bool wants_moments = start.is_own || state.plan.origin.optimizer;
  auto import = value_or_throw(dcp::find_parameters(start.source->metadata(), state.whole));
  if (wants_moments && !import.has_moments)
    throw EngineError(ExitCode::kUnusable, start.source->folder() + " has no optimizer state",
                      "resume from an older checkpoint of the run");
  if (!wants_moments)
    for (auto& source : import.parameters) source.state.clear();
  std::map<std::string, dcp::ParameterSource> sources;
  for (std::size_t i = 0; i < import.parameters.size(); ++i)
    sources[state.whole.parameters[i].name] = import.parameters[i];
  Items items = tensors_of(state, Runs::kHeld, [&](const model::ParameterSpec& parameter) {
    return sources.at(parameter.name);
  });
  if (planted(Bug::kMomentNotRestored))
    std::erase_if(items.tensors,
                  [](const TensorItem& item) { return item.key.ends_with(".exp_avg_sq"); });
  start.source->load(items);
  if (state.offload != nullptr) state.offload->release();
  state::publish_masters(state.groups);
}

void load_weights(const RankState& state) {
  const Items items = tensors_of(state, Runs::kHeld, [](const model::ParameterSpec& parameter) {
    return dcp::ParameterSource{parameter.name, "", 0};
  });
  checkpoint::load_safetensors(state.plan.recipe.model.hf, state.whole, items.tensors, state.world);
  state::publish_masters(state.groups);
}

}  // namespace ptrain::train
