#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/recipe/shapes.h"
#include "core/recipe/source_weights.h"
#include "core/run/directory.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/data/entropy.h"
#include "engine/data/loader.h"
#include "engine/train/evaluation.h"
#include "engine/train/learning_rate.h"
#include "engine/train/reporter.h"
#include "engine/train/run_data.h"
#include "engine/train/run_state.h"
#include "engine/train/shape_run.h"
#include "engine/train/trace.h"

namespace ptrain::train {
namespace {

using Clock = std::chrono::steady_clock;
using run::EventKind;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What all ranks decide together at the end of a step.
struct Decision {
  bool stop = false;
  bool checkpoint = false;
};

class Trainer {
 public:
  explicit Trainer(const TrainInput& input)
      : input_(input),
        recipe_(input.plan.recipe),
        directory_{input.request.run_directory},
        total_steps_(recipe::total_steps(recipe_)) {}

  Outcome run() {
    if (!start())
      return {ExitCode::kDone, "the newest good checkpoint is in another shape",
              recipe_.shapes[span_.index].name};
    while (progress_.step < span_.last_step) {
      step();
      const Decision decision = decide();
      const bool shape_ends = progress_.step == span_.last_step;
      if (shape_ends || is_due(recipe_.validation.every_steps)) run_validation();
      if (decision.checkpoint || decision.stop || shape_ends) save();
      if (decision.stop && !shape_ends) return end(stopped());
    }
    return end(finished());
  }

 private:
  // False: the checkpoint is in another shape than this attempt was started for.
  bool start() {
    input_.control.set_phase("starting");
    fault::point("start.checkpoint.find");
    const Start from = find_start(input_.plan, directory_, input_.world);
    fault::point("start.checkpoint.found");
    progress_ = from.progress;
    first_step_ = progress_.step;
    span_ = recipe::shape_after(recipe_, progress_.step);
    fault::point("start.progress.ready");
    if (!is_started_for_this_shape()) return false;
    data_ = open_data(input_.plan, progress_, input_.world);
    shape_.emplace(input_.plan, span_.index, input_.world);
    fault::point("start.loader");
    const bool by_rank = planted(Bug::kOrderByRank) && input_.world.rank() > 0;
    loader_.emplace(
        data_.train,
        data::Loader::Options{by_rank ? recipe_.seed + 1 : recipe_.seed, shape_->shape().sequence,
                              recipe_.data.packing, true, recipe::source_weights(recipe_.data)});
    if (from.source)
      load_state(rank_state(), from);
    else
      shape_->initialise(recipe_.seed);
    fault::point("start.restore");
    if (!progress_.train_hash.empty()) loader_->restore(progress_.position);
    fault::point("start.restored");
    if (from.source && from.is_own) saved_step_ = progress_.step;
    progress_.train_hash = data_.train->content_hash();
    if (data_.validation != nullptr) progress_.validation_hash = data_.validation->content_hash();
    reporter_.emplace(input_, *shape_, progress_.step);
    if (recipe_.log.trace_steps > 0)
      trace_.emplace(shape_->executor(),
                     directory_.trace(input_.request.attempt, input_.world.rank()),
                     input_.world.rank(), recipe_.log.trace_steps);
    say_started(from);
    fault::point("start.reported");
    last_save_ = Clock::now();
    return true;
  }

  // The supervisor chose the shape by the newest checkpoint; when that one is damaged, an older one
  // may lie in an earlier shape, which has another plan and may want other ranks.
  bool is_started_for_this_shape() const {
    const std::string& asked = input_.request.shape;
    return asked.empty() || asked == recipe_.shapes[span_.index].name;
  }

  std::int64_t num_cut_documents() const {
    return data::count_cut_documents(*data_.train, shape_->shape().sequence);
  }

  void say_started(const Start& from) {
    for (const std::string& why : from.damaged)
      reporter_->warn("a checkpoint is damaged, so an older one is used: " + why);
    if (data_.sources_changed)
      reporter_->warn(
          "the data files have changed since the checkpoint: training goes on with the "
          "index it was trained on");
    reporter_->event(EventKind::kShapeStarted,
                     {{"shape", shape_->shape().name},
                      {"step", progress_.step},
                      {"last_step", span_.last_step},
                      {"total_steps", total_steps_},
                      {"checkpoint", from.source ? from.source->folder() : ""},
                      {"documents", data_.train->num_documents()},
                      {"cut_documents", num_cut_documents()}});
  }

  void step() {
    input_.control.set_phase("step");
    const auto begin = Clock::now();
    fault::point("train.step");
    const auto& layout = shape_->layout();
    const auto rows = loader_->next(shape_->data_rank(), layout.num_data_ranks(),
                                    layout.num_micro_batches, layout.micro_batch);
    fault::point("train.rows");
    const auto& optimizer = recipe_.optimizer;
    execute::StepSettings settings;
    const std::int64_t number = progress_.step + 1;
    settings.step = planted(Bug::kAdamStepRestarts) ? number - first_step_ : number;
    settings.learning_rate = rate_of(number);
    settings.clip_norm = optimizer.clip_norm;
    settings.adamw = {optimizer.beta1, optimizer.beta2, optimizer.eps, optimizer.weight_decay};
    const auto result =
        shape_->executor().train(shape_->train_program(), rows.micro_batches, settings);
    fault::point("train.computed");
    check_finite(result, number);
    progress_.step = number;
    progress_.tokens_total += result.num_targets;
    if (trace_) trace_->step_done(progress_.step);
    reporter_->step(result, progress_, settings.learning_rate, seconds_since(begin));
    fault::point("train.reported");
  }

  double rate_of(std::int64_t step) const {
    return learning_rate(recipe_.learning_rate, step, total_steps_);
  }

  void check_finite(const execute::StepResult& result, std::int64_t step) {
    if (result.finite) return;
    const auto text = fmt::format("step {}: loss {} and gradient norm {} are not both finite", step,
                                  result.loss, result.grad_norm);
    if (recipe_.failure.nonfinite == recipe::OnNonFinite::kStop)
      throw EngineError(ExitCode::kNonFinite, text,
                        "lower learning_rate.peak or raise warmup_steps, and resume from the last "
                        "checkpoint; failure.nonfinite=skip goes on without the step");
    reporter_->warn(text + "; the step is skipped");
  }

  bool is_due(std::int64_t every) const { return every > 0 && progress_.step % every == 0; }

  // The wish of any rank counts. Collective over the world.
  Decision decide() {
    fault::point("train.decide");
    const double minutes = recipe_.checkpoint.every_minutes;
    const bool by_time =
        input_.world.rank() == 0 && minutes > 0 && seconds_since(last_save_) >= 60 * minutes;
    std::array<std::int32_t, 2> wishes{input_.control.stop_requested() ? 1 : 0, by_time ? 1 : 0};
    input_.world
        .all_reduce(reinterpret_cast<std::byte*>(wishes.data()), DType::kInt32, 2,
                    comm::ReduceOp::kMax)
        ->wait();
    fault::point("train.decided");
    return {wishes[0] != 0, wishes[1] != 0 || is_due(recipe_.checkpoint.every_steps)};
  }

  // At the end of the run beside what simpler models would reach on the text, and with a sample.
  void run_validation() {
    input_.control.set_phase("validation");
    fault::point("train.validation");
    const bool run_ends = progress_.step == total_steps_;
    nlohmann::json fields;
    if (data_.validation != nullptr && recipe_.validation.tokens > 0) {
      const auto result = validate(*shape_, data_.validation, recipe_);
      fields = {{"loss", result.loss}, {"tokens", result.num_targets}};
      if (run_ends && input_.world.rank() == 0) {
        const auto entropy = data::text_entropy(*data_.validation);
        fields["unigram"] = entropy.unigram;
        fields["bigram"] = entropy.bigram;
      }
    }
    if (run_ends && recipe_.validation.sample_tokens > 0)
      fields["sample"] = sample(*shape_, recipe_.validation.sample_tokens, recipe_.seed);
    fault::point("train.validation.end");
    if (fields.empty()) return;
    fields["step"] = progress_.step;
    reporter_->event(EventKind::kValidation, std::move(fields));
  }

  // A checkpoint that cannot be written costs no training: it is said loudly and tried again later.
  void save() {
    input_.control.set_phase("checkpoint");
    fault::point("save.begin");
    progress_.position = loader_->position();
    const std::string folder = directory_.checkpoint(progress_.step);
    fault::point("save.position");
    reporter_->event(EventKind::kCheckpointStarted, {{"step", progress_.step}});
    try {
      save_state(rank_state(), progress_, rate_of(progress_.step), folder);
      saved_step_ = progress_.step;
      fault::point("publish.prune");
      if (input_.world.rank() == 0)
        checkpoint::prune(directory_.checkpoints(), recipe_.checkpoint.keep);
      fault::point("publish.event");
      reporter_->event(EventKind::kCheckpointPublished,
                       {{"step", progress_.step}, {"folder", folder}});
    } catch (const EngineError& error) {
      if (error.error().code != ExitCode::kUnusable) throw;
      save_error_ = error.what();
      reporter_->event(EventKind::kCheckpointFailed,
                       {{"step", progress_.step}, {"message", error.what()}});
    }
    fault::point("publish.done");
    last_save_ = Clock::now();
  }

  Outcome unsaved() const {
    return {ExitCode::kUnusable,
            fmt::format("step {} is done, but its checkpoint could not be written: {}",
                        progress_.step, save_error_),
            ""};
  }

  Outcome stopped() const {
    if (saved_step_ != progress_.step) return unsaved();
    return {ExitCode::kStopped,
            fmt::format("stopped after step {}, checkpoint written", progress_.step), ""};
  }

  Outcome finished() const {
    if (saved_step_ != progress_.step) return unsaved();
    if (progress_.step < total_steps_)
      return {ExitCode::kDone, fmt::format("shape '{}' is finished", shape_->shape().name),
              recipe_.shapes[span_.index + 1].name};
    return {ExitCode::kDone, fmt::format("all {} steps are done", total_steps_), ""};
  }

  Outcome end(Outcome outcome) {
    reporter_->shape_finished(progress_.step);
    shape_->close();
    fault::point("next.closed");
    return outcome;
  }

  RankState rank_state() {
    return {shape_->architecture(), input_.plan, shape_->layout(), shape_->executor().groups(),
            input_.world};
  }

  const TrainInput& input_;
  const recipe::Recipe& recipe_;
  run::Directory directory_;
  std::int64_t total_steps_;
  Progress progress_;
  recipe::ShapeSpan span_;
  RunData data_;
  std::optional<ShapeRun> shape_;
  std::optional<data::Loader> loader_;
  std::optional<Reporter> reporter_;
  std::optional<Trace> trace_;
  Clock::time_point last_save_;
  std::int64_t first_step_ = 0;  // finished before this attempt
  std::int64_t saved_step_ = -1;
  std::string save_error_;  // of the last checkpoint that could not be written
};

}  // namespace

Outcome train(const TrainInput& input) { return Trainer(input).run(); }

}  // namespace ptrain::train
