#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/data/entropy.h"
#include "engine/train/attempt.h"
#include "engine/train/evaluation.h"
#include "engine/train/same_steps.h"
#include "engine/train/saver.h"

namespace ptrain::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Without the sign that a NaN may carry.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

// What all ranks decide together at the end of a step.
struct Decision {
  bool stop = false;
  bool checkpoint = false;
  bool all_wrote = false;  // no rank works on a checkpoint any more
};

// Trains the shape of an open attempt to its end, or to a stop request.
class Trainer {
 public:
  explicit Trainer(Attempt& attempt)
      : attempt_(attempt),
        input_(attempt.input),
        recipe_(attempt.recipe),
        progress_(attempt.progress),
        saver_(attempt) {}

  Outcome run() {
    try {
      return run_to_end();
    } catch (const EngineError& error) {
      // All ranks stop here: what they were saving is worth the more.
      if (error.error().code == ExitCode::kNonFinite) saver_.finish();
      throw;
    }
  }

 private:
  Outcome run_to_end() {
    check_same_steps(input_.world, attempt_.span.last_step - progress_.step);
    while (progress_.step < attempt_.span.last_step) {
      step();
      const Decision decision = decide();
      if (decision.all_wrote) saver_.go_on();
      const bool shape_ends = progress_.step == attempt_.span.last_step;
      if (decision.stop) {  // who stops a run may not wait for a validation
        saver_.save();
        if (!shape_ends) return end(stopped());
      }
      if (shape_ends || is_due(recipe_.validation.every_steps)) run_validation();
      if (shape_ends && !saver_.has_saved_all())
        saver_.save();
      else if (decision.checkpoint && !shape_ends)
        saver_.save_behind();
    }
    return end(finished());
  }

  void step() {
    input_.control.set_phase("step");
    const auto begin = Clock::now();
    fault::point("train.step");
    ShapeRun& shape = *attempt_.shape;
    const auto& layout = shape.layout();
    const auto rows = attempt_.loader->next(shape.data_rank(), layout.num_data_ranks(),
                                            layout.num_micro_batches, layout.micro_batch);
    const double data_s = seconds_since(begin);
    fault::point("train.rows");
    const std::int64_t number = progress_.step + 1;
    const auto settings = attempt_.settings_of(number);
    const auto result = shape.executor().train(shape.train_program(), rows.micro_batches, settings);
    fault::point("train.computed");
    check_finite(result, number);
    progress_.step = number;
    progress_.tokens_total += result.num_targets;
    if (attempt_.trace) attempt_.trace->step_done(progress_.step);
    const double step_s = seconds_since(begin);
    input_.control.spent(step_s, data_s);
    attempt_.reporter->step(result, progress_, settings.learning_rate, step_s);
    fault::point("train.reported");
  }

  void check_finite(const execute::StepResult& result, std::int64_t step) {
    if (result.finite) return;
    const auto text = fmt::format("step {}: loss {} and gradient norm {} are not both finite", step,
                                  number_text(result.loss), number_text(result.grad_norm));
    if (recipe_.failure.nonfinite == recipe::OnNonFinite::kStop)
      throw EngineError(ExitCode::kNonFinite, text,
                        "lower learning_rate.peak or raise warmup_steps, and resume from the last "
                        "checkpoint; failure.nonfinite=skip goes on without the step");
    attempt_.reporter->warn(text + "; the step is skipped");
  }

  bool is_due(std::int64_t every) const { return every > 0 && progress_.step % every == 0; }

  // The wish of any rank counts. Collective over the world.
  Decision decide() {
    fault::point("train.decide");
    const bool by_time = input_.world.rank() == 0 && saver_.is_due_by_time();
    std::array<std::int32_t, 3> wishes{input_.control.stop_requested() ? 1 : 0, by_time ? 1 : 0,
                                       saver_.is_working() ? 1 : 0};
    input_.world
        .all_reduce(reinterpret_cast<std::byte*>(wishes.data()), DType::kInt32, std::ssize(wishes),
                    comm::ReduceOp::kMax)
        ->wait();
    fault::point("train.decided");
    return {wishes[0] != 0, wishes[1] != 0 || is_due(recipe_.checkpoint.every_steps),
            wishes[2] == 0};
  }

  // At the end of the run beside what simpler models would reach on the text, and with a sample.
  void run_validation() {
    input_.control.set_phase("validation");
    fault::point("train.validation");
    const bool run_ends = progress_.step == attempt_.total_steps;
    nlohmann::json fields;
    if (attempt_.data.validation != nullptr && recipe_.validation.tokens > 0) {
      const auto result = validate(*attempt_.shape, attempt_.data.validation, recipe_);
      fields = {{"loss", result.loss}, {"tokens", result.num_targets}};
      if (run_ends && input_.world.rank() == 0) {
        const auto entropy = data::text_entropy(*attempt_.data.validation);
        fields["unigram"] = entropy.unigram;
        fields["bigram"] = entropy.bigram;
      }
    }
    if (run_ends && recipe_.validation.sample_tokens > 0)
      fields["sample"] = sample(*attempt_.shape, *attempt_.data.tokenizer,
                                recipe_.validation.sample_tokens, recipe_.seed);
    fault::point("train.validation.end");
    if (fields.empty()) return;
    fields["step"] = progress_.step;
    attempt_.reporter->event(run::EventKind::kValidation, std::move(fields));
  }

  Outcome unsaved() const {
    return {ExitCode::kUnusable,
            fmt::format("step {} is done, but its checkpoint could not be written: {}",
                        progress_.step, saver_.error()),
            ""};
  }

  Outcome stopped() const {
    if (!saver_.has_saved_all()) return unsaved();
    return {ExitCode::kStopped,
            fmt::format("stopped after step {}, checkpoint written", progress_.step), ""};
  }

  Outcome finished() const {
    if (!saver_.has_saved_all()) return unsaved();
    if (progress_.step < attempt_.total_steps)
      return {ExitCode::kDone, fmt::format("shape '{}' is finished", attempt_.shape->shape().name),
              recipe_.shapes[attempt_.span.index + 1].name};
    return {ExitCode::kDone, fmt::format("all {} steps are done", attempt_.total_steps), ""};
  }

  Outcome end(Outcome outcome) {
    attempt_.reporter->shape_finished(progress_.step);
    attempt_.shape->close();
    fault::point("next.closed");
    return outcome;
  }

  Attempt& attempt_;
  const TrainInput& input_;
  const recipe::Recipe& recipe_;
  Progress& progress_;
  Saver saver_;
};

}  // namespace

Outcome train(const TrainInput& input) {
  Attempt attempt(input);
  if (!open(attempt))
    return {ExitCode::kDone, "the newest good checkpoint is in another shape",
            attempt.recipe.shapes[attempt.span.index].name};
  return Trainer(attempt).run();
}

}  // namespace ptrain::train
