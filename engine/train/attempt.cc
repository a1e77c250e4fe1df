#include "engine/train/attempt.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/packing/random.h"
#include "core/recipe/source_weights.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/train/finite.h"
#include "engine/train/learning_rate.h"

namespace ptrain::train {
namespace {

// The supervisor chose the shape by the newest checkpoint; when that one is damaged, an older one
// may lie in an earlier shape, which has another plan and may want other ranks.
bool is_started_for_this_shape(const Attempt& attempt) {
  const std::string& asked = attempt.input.request.shape;
  return asked.empty() || asked == attempt.recipe.shapes[attempt.span.index].name;
}

data::Loader::Options loader_options(const Attempt& attempt) {
  const recipe::Recipe& recipe = attempt.recipe;
  const bool by_rank = planted(Bug::kOrderByRank) && attempt.input.world.rank() > 0;
  return {by_rank ? recipe.seed + 1 : recipe.seed, attempt.shape->shape().sequence,
          recipe.data.packing, true, recipe::source_weights(recipe.data)};
}

void restore(Attempt& attempt, const Start& from) {
  if (from.source) {
    load_state(attempt.rank_state(), from);
    check_finite(attempt.rank_state(), from.source->folder());
  } else if (!attempt.recipe.model.hf.empty()) {
    load_weights(attempt.rank_state());
  } else {
    attempt.shape->initialise(attempt.recipe.seed);
  }
  fault::point("start.restore");
  Progress& progress = attempt.progress;
  if (!progress.train_hash.empty()) attempt.loader->restore(progress.position);
  fault::point("start.restored");
  if (from.source && from.is_own) attempt.saved_step = progress.step;
  progress.train_hash = attempt.data.train->content_hash();
  if (attempt.data.validation != nullptr)
    progress.validation_hash = attempt.data.validation->content_hash();
}

void open_reports(Attempt& attempt) {
  const TrainInput& input = attempt.input;
  attempt.reporter.emplace(input, *attempt.shape, attempt.progress.step);
  if (attempt.recipe.log.trace_steps > 0)
    attempt.trace.emplace(attempt.shape->executor(),
                          attempt.directory.trace(input.request.attempt, input.world.rank()),
                          input.world.rank(), attempt.recipe.log.trace_steps);
}

// Its documents, in order: one comes as often as the weight of its source says.
auto first_epoch_of(const Attempt& attempt) {
  return packing::weighted_order(
      attempt.recipe.seed, 0,
      packing::sources_from(attempt.data.train->sources(),
                            recipe::source_weights(attempt.recipe.data)));
}

void say_started(Attempt& attempt, const Start& from) {
  Reporter& reporter = *attempt.reporter;
  for (const std::string& why : from.damaged)
    reporter.warn("a checkpoint is damaged, so an older one is used: " + why);
  if (attempt.data.sources_changed)
    reporter.warn(
        "the data files have changed since the checkpoint: training goes on with the "
        "index it was trained on");
  if (attempt.input.world.rank() > 0) return;  // its events are nobody's
  const recipe::Shape& shape = attempt.shape->shape();
  const auto order = first_epoch_of(attempt);
  reporter.event(run::EventKind::kShapeStarted,
                 {{"shape", shape.name},
                  {"step", attempt.progress.step},
                  {"last_step", attempt.span.last_step},
                  {"total_steps", attempt.total_steps},
                  {"checkpoint", from.source ? from.source->folder() : attempt.recipe.model.hf},
                  {"documents", order.size()},
                  {"cut_documents", data::count_cut(*attempt.data.train, order, shape.sequence)}});
}

}  // namespace

Attempt::Attempt(const TrainInput& train_input)
    : input(train_input),
      recipe(train_input.plan.recipe),
      directory{train_input.request.run_directory},
      total_steps(recipe::total_steps(recipe)) {}

RankState Attempt::rank_state() {
  return {shape->whole(),
          shape->architecture(),
          input.plan,
          shape->layout(),
          shape->executor().groups(),
          input.world,
          shape->executor().offload()};
}

double Attempt::learning_rate_of(std::int64_t step) const {
  return learning_rate(recipe.learning_rate, step, total_steps);
}

execute::StepSettings Attempt::settings_of(std::int64_t step) const {
  execute::StepSettings settings;
  settings.step = planted(Bug::kAdamStepRestarts) ? step - first_step : step;
  settings.learning_rate = learning_rate_of(step);
  settings.clip_norm = recipe.optimizer.clip_norm;
  settings.optimizer = optim::options_of(recipe.optimizer, recipe.model);
  return settings;
}

void begin(Attempt& attempt, const Start& from) {
  const TrainInput& input = attempt.input;
  attempt.data = open_data(input.plan, attempt.progress, input.world);
  attempt.shape.emplace(input.plan, attempt.span.index, input.world, attempt.directory.offload());
  fault::point("start.loader");
  attempt.loader.emplace(attempt.data.train, loader_options(attempt));
  restore(attempt, from);
}

namespace {

bool open(Attempt& attempt, checkpoint::Check check) {
  const TrainInput& input = attempt.input;
  fault::point("start.checkpoint.find");
  const Start from = find_start(input.plan, attempt.directory, input.world, check);
  fault::point("start.checkpoint.found");
  attempt.progress = from.progress;
  attempt.first_step = from.progress.step;
  attempt.span = recipe::shape_after(attempt.recipe, from.progress.step);
  fault::point("start.progress.ready");
  if (!is_started_for_this_shape(attempt)) return false;
  begin(attempt, from);
  open_reports(attempt);
  say_started(attempt, from);
  fault::point("start.reported");
  return true;
}

}  // namespace

bool open(Attempt& attempt) {
  attempt.input.control.set_phase("starting");
  try {
    if (open(attempt, checkpoint::Check::kWhileLoading)) return true;
  } catch (const checkpoint::Damaged&) {
    if (attempt.shape) attempt.shape->close();
    attempt.shape.reset();
  }
  // Once more, and now the newest whose every byte is right: also before another shape is asked
  // for, which may have been tried, and found damaged.
  return open(attempt, checkpoint::Check::kAtOnce);
}

}  // namespace ptrain::train
