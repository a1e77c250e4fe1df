#include "engine/train/saver.h"

#include <nlohmann/json.hpp>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/checkpoint.h"

namespace ptrain::train {

using run::EventKind;

void Saver::save() {
  attempt_.input.control.set_phase("checkpoint");
  fault::point("save.begin");
  Progress& progress = attempt_.progress;
  progress.position = attempt_.loader->position();
  const std::string folder = attempt_.directory.checkpoint(progress.step);
  fault::point("save.position");
  attempt_.reporter->event(EventKind::kCheckpointStarted, {{"step", progress.step}});
  try {
    publish(folder);
  } catch (const EngineError& error) {
    if (error.error().code != ExitCode::kUnusable) throw;
    error_ = error.what();
    attempt_.reporter->event(EventKind::kCheckpointFailed,
                             {{"step", progress.step}, {"message", error.what()}});
  }
  fault::point("publish.done");
  last_try_ = Clock::now();
}

void Saver::publish(const std::string& folder) {
  const std::int64_t step = attempt_.progress.step;
  save_state(attempt_.rank_state(), attempt_.progress, attempt_.learning_rate_of(step), folder);
  attempt_.saved_step = step;
  fault::point("publish.prune");
  if (attempt_.input.world.rank() == 0)
    checkpoint::prune(attempt_.directory.checkpoints(), attempt_.recipe.checkpoint.keep);
  fault::point("publish.event");
  attempt_.reporter->event(EventKind::kCheckpointPublished, {{"step", step}, {"folder", folder}});
}

bool Saver::is_due_by_time() const {
  const double minutes = attempt_.recipe.checkpoint.every_minutes;
  const std::chrono::duration<double> passed = Clock::now() - last_try_;
  return minutes > 0 && passed.count() >= 60 * minutes;
}

}  // namespace ptrain::train
