#include "engine/train/run_state.h"

#include <algorithm>

#include "core/recipe/json.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"

namespace ptrain::train {
namespace {

using checkpoint::Items;
using checkpoint::TensorItem;
using checkpoint::ValueItem;

// The step of the moments, a float32 scalar as torch.optim keeps it, beside each parameter.
void add_run(const RankState& state, state::GroupBuffer& group, const mesh::ShardRun& run,
             float& optimizer_step, Items& items) {
  const auto& parameter = state.architecture.parameters[static_cast<std::size_t>(run.parameter)];
  const std::string moments = "optim.state." + parameter.name;
  auto add = [&](const std::string& key, const Tensor& view) {
    items.tensors.push_back({key, view.dtype, parameter.shape, run.begin, run.end, view.data});
  };
  add("model." + parameter.name, group.master(run));
  add(moments + ".exp_avg", group.exp_avg(run));
  add(moments + ".exp_avg_sq", group.exp_avg_sq(run));
  if (run.begin == 0)
    items.tensors.push_back({moments + ".step", DType::kFloat32, {}, 0, 1, &optimizer_step});
}

Items tensors_of(const RankState& state, float& optimizer_step) {
  Items items;
  for (auto& group : state.groups)
    for (const auto& run : group.runs()) add_run(state, group, run, optimizer_step, items);
  return items;
}

void add_values(const RankState& state, const Progress& progress, double learning_rate,
                Items& items) {
  const recipe::Recipe& recipe = state.plan.recipe;
  const auto& optimizer = recipe.optimizer;
  for (const auto& parameter : state.architecture.parameters) {
    const std::string group = "optim.param_groups." + parameter.name;
    items.values.push_back({group + ".lr", learning_rate});
    items.values.push_back({group + ".beta1", optimizer.beta1});
    items.values.push_back({group + ".beta2", optimizer.beta2});
    items.values.push_back({group + ".eps", optimizer.eps});
    items.values.push_back(
        {group + ".weight_decay", parameter.decays ? optimizer.weight_decay : 0.0});
  }
  items.values.push_back({"train.step", progress.step});
  items.values.push_back({"train.tokens", progress.tokens_total});
  items.values.push_back(
      {"train.shape", recipe.shapes[shape_after(recipe, progress.step).index].name});
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

void save_state(const RankState& state, const Progress& progress, double learning_rate,
                const std::string& folder) {
  auto optimizer_step = static_cast<float>(progress.step);
  // Replicas hold the same shards: the first one writes.
  const bool writes = mesh::coordinates_of(state.layout, state.world.rank()).dp == 0;
  Items items = writes ? tensors_of(state, optimizer_step) : Items{};
  add_values(state, progress, learning_rate, items);
  checkpoint::save(folder, items, state.world);
}

Progress load_state(const RankState& state, const std::string& folder) {
  float optimizer_step = 0;
  Items items = tensors_of(state, optimizer_step);
  items.values = progress_values().values;
  return progress_from(checkpoint::load(folder, items, state.world));
}

Progress load_progress(const std::string& folder, comm::Communicator& world) {
  return progress_from(checkpoint::load(folder, progress_values(), world));
}

}  // namespace ptrain::train
