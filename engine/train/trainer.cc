#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "core/run/directory.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/control/resident_bytes.h"
#include "engine/data/loader.h"
#include "engine/train/evaluation.h"
#include "engine/train/learning_rate.h"
#include "engine/train/metrics.h"
#include "engine/train/run_data.h"
#include "engine/train/run_state.h"
#include "engine/train/shape_run.h"

namespace ptrain::train {
namespace {

using Clock = std::chrono::steady_clock;
using run::EventKind;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What all ranks decide together at the end of a step; the largest request of any rank wins.
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
        total_steps_(total_steps(recipe_)) {}

  Outcome run() {
    start();
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
  void start() {
    input_.control.set_phase("starting");
    const std::string checkpoint = find_checkpoint(input_.request, directory_, input_.world);
    if (!checkpoint.empty()) progress_ = load_progress(checkpoint, input_.world);
    span_ = shape_after(recipe_, progress_.step);
    data_ = open_data(input_.plan, progress_, input_.world);
    shape_.emplace(input_.plan, span_.index, input_.world);
    loader_.emplace(data_.train, data::Loader::Options{recipe_.seed, shape_->shape().sequence,
                                                       recipe_.data.packing, true});
    if (checkpoint.empty()) {
      shape_->initialise(recipe_.seed);
    } else {
      load_state(rank_state(), checkpoint);
      loader_->restore(progress_.position);
    }
    progress_.train_hash = data_.train->content_hash();
    if (data_.validation != nullptr) progress_.validation_hash = data_.validation->content_hash();
    if (is_first() && data_.sources_changed)
      warn(
          "the data files have changed since the checkpoint: training goes on with the index it "
          "was trained on");
    if (is_first()) metrics_.emplace(directory_.metrics(), progress_.step, input_.request.attempt);
    input_.control.event(EventKind::kRankReady, {{"step", progress_.step}});
    if (is_first())
      input_.control.event(EventKind::kShapeStarted, {{"shape", shape_->shape().name},
                                                      {"step", progress_.step},
                                                      {"last_step", span_.last_step},
                                                      {"total_steps", total_steps_},
                                                      {"checkpoint", checkpoint}});
    last_save_ = Clock::now();
  }

  void step() {
    input_.control.set_phase("step");
    const auto begin = Clock::now();
    const auto& layout = shape_->layout();
    const auto rows = loader_->next(shape_->data_rank(), layout.num_data_ranks(),
                                    layout.num_micro_batches, layout.micro_batch);
    const auto& optimizer = recipe_.optimizer;
    execute::StepSettings settings;
    settings.step = progress_.step + 1;
    settings.learning_rate = learning_rate(recipe_.learning_rate, settings.step, total_steps_);
    settings.clip_norm = optimizer.clip_norm;
    settings.adamw = {optimizer.beta1, optimizer.beta2, optimizer.eps, optimizer.weight_decay};
    const auto result =
        shape_->executor().train(shape_->train_program(), rows.micro_batches, settings);
    check_finite(result, settings.step);
    progress_.step = settings.step;
    progress_.tokens_total += result.num_targets;
    report(result, settings.learning_rate, seconds_since(begin));
  }

  void check_finite(const execute::StepResult& result, std::int64_t step) {
    if (result.finite) return;
    const auto text = fmt::format("step {}: loss {} and gradient norm {} are not both finite", step,
                                  result.loss, result.grad_norm);
    if (recipe_.failure.nonfinite == recipe::OnNonFinite::kStop)
      throw EngineError(ExitCode::kNonFinite, text,
                        "lower learning_rate.peak or raise warmup_steps, and resume from the last "
                        "checkpoint; failure.nonfinite=skip goes on without the step");
    if (is_first()) warn(text + "; the step is skipped");
  }

  void warn(const std::string& text) {
    input_.control.event(EventKind::kWarning, {{"message", text}});
  }

  void report(const execute::StepResult& result, double rate, double step_s) {
    step_times_.push_back(step_s);
    if (!is_first()) return input_.control.set_step(progress_.step);
    run::StepDone done;
    done.step = progress_.step;
    done.shape = shape_->shape().name;
    done.loss = result.loss;
    done.grad_norm = result.grad_norm;
    done.learning_rate = rate;
    done.tokens = result.num_targets;
    done.tokens_total = progress_.tokens_total;
    done.step_s = step_s;
    done.tokens_per_s = static_cast<double>(result.num_targets) / step_s;
    done.mfu = model_flops_share(done.tokens_per_s);
    done.bytes_peak = control::resident_bytes();
    metrics_->write(done);
    input_.control.step_done(done);
  }

  double model_flops_share(double tokens_per_s) const {
    const double peak = input_.plan.peak_flops_per_rank * input_.world.size();
    if (peak <= 0) return 0;
    return tokens_per_s *
           model::train_flops_per_token(shape_->architecture(), shape_->shape().sequence) / peak;
  }

  bool is_due(std::int64_t every) const { return every > 0 && progress_.step % every == 0; }

  Decision decide() {
    const double minutes = recipe_.checkpoint.every_minutes;
    const bool by_time = is_first() && minutes > 0 && seconds_since(last_save_) >= 60 * minutes;
    std::array<std::int32_t, 2> wishes{input_.control.stop_requested() ? 1 : 0, by_time ? 1 : 0};
    input_.world
        .all_reduce(reinterpret_cast<std::byte*>(wishes.data()), DType::kInt32, 2,
                    comm::ReduceOp::kMax)
        ->wait();
    return {wishes[0] != 0, wishes[1] != 0 || is_due(recipe_.checkpoint.every_steps)};
  }

  void run_validation() {
    if (data_.validation == nullptr || recipe_.validation.tokens == 0) return;
    input_.control.set_phase("validation");
    const auto result = validate(*shape_, data_.validation, recipe_);
    if (is_first())
      input_.control.event(
          EventKind::kValidation,
          {{"step", progress_.step}, {"loss", result.loss}, {"tokens", result.num_targets}});
  }

  // A checkpoint that cannot be written costs no training: it is said loudly and tried again later.
  void save() {
    input_.control.set_phase("checkpoint");
    progress_.position = loader_->position();
    const std::string folder = directory_.checkpoint(progress_.step);
    if (is_first()) input_.control.event(EventKind::kCheckpointStarted, {{"step", progress_.step}});
    try {
      save_state(rank_state(), progress_,
                 learning_rate(recipe_.learning_rate, progress_.step, total_steps_), folder);
      if (is_first()) checkpoint::prune(directory_.checkpoints(), recipe_.checkpoint.keep);
      if (is_first())
        input_.control.event(EventKind::kCheckpointPublished,
                             {{"step", progress_.step}, {"folder", folder}});
      saved_step_ = progress_.step;
    } catch (const EngineError& error) {
      if (error.error().code != ExitCode::kUnusable) throw;
      if (is_first())
        input_.control.event(EventKind::kCheckpointFailed,
                             {{"step", progress_.step}, {"message", error.what()}});
    }
    last_save_ = Clock::now();
  }

  Outcome stopped() const {
    if (saved_step_ != progress_.step)
      return {ExitCode::kUnusable,
              fmt::format("stopped after step {}, but its checkpoint could not be written",
                          progress_.step),
              ""};
    return {ExitCode::kStopped,
            fmt::format("stopped after step {}, checkpoint written", saved_step_), ""};
  }

  Outcome finished() {
    if (saved_step_ != progress_.step && progress_.step > span_.first_step && !step_times_.empty())
      return {
          ExitCode::kUnusable,
          fmt::format("finished step {}, but its checkpoint could not be written", progress_.step),
          ""};
    if (progress_.step < total_steps_)
      return {ExitCode::kDone, fmt::format("shape '{}' is finished", shape_->shape().name),
              recipe_.shapes[span_.index + 1].name};
    if (recipe_.validation.sample_tokens > 0) {
      input_.control.set_phase("sample");
      const std::string text = sample(*shape_, recipe_.validation.sample_tokens, recipe_.seed);
      if (is_first())
        input_.control.event(EventKind::kValidation, {{"step", progress_.step}, {"sample", text}});
    }
    return {ExitCode::kDone, fmt::format("all {} steps are done", total_steps_), ""};
  }

  Outcome end(Outcome outcome) {
    if (is_first()) input_.control.event(EventKind::kShapeFinished, measured());
    shape_->close();
    return outcome;
  }

  // What the plan predicted, as it was.
  nlohmann::json measured() {
    nlohmann::json fields{{"shape", shape_->shape().name}, {"step", progress_.step}};
    if (!step_times_.empty()) {
      auto middle = step_times_.begin() + static_cast<std::ptrdiff_t>(step_times_.size() / 2);
      std::nth_element(step_times_.begin(), middle, step_times_.end());
      fields["step_s"] = *middle;
    }
    for (int i = 0; i < program::kNumMemoryClasses; ++i) {
      const auto memory_class = static_cast<program::MemoryClass>(i);
      fields["bytes"][std::string(program::to_string(memory_class))] =
          shape_->arena().peak(memory_class).value;
    }
    return fields;
  }

  bool is_first() const { return input_.world.rank() == 0; }
  RankState rank_state() {
    return {shape_->architecture(), input_.plan, shape_->layout(), shape_->executor().groups(),
            input_.world};
  }

  const TrainInput& input_;
  const recipe::Recipe& recipe_;
  run::Directory directory_;
  std::int64_t total_steps_;
  Progress progress_;
  ShapeSpan span_;
  RunData data_;
  std::optional<ShapeRun> shape_;
  std::optional<data::Loader> loader_;
  std::optional<Metrics> metrics_;
  Clock::time_point last_save_;
  std::int64_t saved_step_ = -1;
  std::vector<double> step_times_;
};

}  // namespace

Outcome train(const TrainInput& input) { return Trainer(input).run(); }

}  // namespace ptrain::train
