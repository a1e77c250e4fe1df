#include "engine/train/reporter.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/run/directory.h"
#include "engine/base/fault.h"
#include "engine/control/resident_bytes.h"

namespace ptrain::train {

Reporter::Reporter(const TrainInput& input, ShapeRun& shape, std::int64_t step)
    : input_(input), shape_(shape) {
  if (is_first())
    metrics_.emplace(run::Directory{input.request.run_directory}.metrics(), step,
                     input.request.attempt);
}

void Reporter::step(const execute::StepResult& result, const Progress& progress,
                    double learning_rate, double step_s) {
  step_times_.push_back(step_s);
  if (!is_first()) return input_.control.set_step(progress.step);
  run::StepDone done;
  done.step = progress.step;
  done.shape = shape_.shape().name;
  done.loss = result.loss;
  done.grad_norm = result.grad_norm;
  done.learning_rate = learning_rate;
  done.tokens = result.num_targets;
  done.tokens_total = progress.tokens_total;
  done.step_s = step_s;
  done.tokens_per_s = static_cast<double>(result.num_targets) / step_s;
  done.mfu = model_flops_share(done.tokens_per_s);
  done.bytes_peak = control::resident_bytes();
  if (const auto full = metrics_->write(done, result.routers)) warn(*full);
  if (result.routers)
    if (const auto message = router_watch_.step(*result.routers)) warn(*message);
  fault::point("train.metrics.written");
  input_.control.step_done(done);
  fault::point("train.control.step");
}

double Reporter::model_flops_share(double tokens_per_s) const {
  const double peak = input_.plan.peak_flops_per_rank * input_.world.size();
  if (peak <= 0) return 0;
  return tokens_per_s * model::train_flops_per_token(shape_.whole(), shape_.shape().sequence) /
         peak;
}

void Reporter::event(run::EventKind kind, nlohmann::json fields) {
  if (is_first()) input_.control.event(kind, std::move(fields));
}

void Reporter::warn(const std::string& message) {
  event(run::EventKind::kWarning, {{"message", message}});
}

void Reporter::shape_finished(std::int64_t step) {
  fault::point("next.report");
  nlohmann::json fields{{"shape", shape_.shape().name}, {"step", step}};
  if (!step_times_.empty()) {
    const auto middle = step_times_.begin() + static_cast<std::ptrdiff_t>(step_times_.size() / 2);
    std::nth_element(step_times_.begin(), middle, step_times_.end());
    fields["step_s"] = *middle;
  }
  for (int i = 0; i < program::kNumMemoryClasses; ++i) {
    const auto memory_class = static_cast<program::MemoryClass>(i);
    fields["bytes"][std::string(program::to_string(memory_class))] =
        shape_.arena().peak(memory_class).value;
  }
  event(run::EventKind::kShapeFinished, std::move(fields));
}

}  // namespace ptrain::train
