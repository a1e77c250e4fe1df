#include "engine/train/saver.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/recipe/recipe.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/copy.h"
#include "engine/checkpoint/share_out.h"

namespace ptrain::train {

using run::EventKind;

namespace {

// A tenth of the share that training has of a core where both want it, and all that it leaves.
constexpr int kNiceness = 10;

void lower_own_priority() { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness); }

}  // namespace

Saver::Saver(Attempt& attempt) : attempt_(attempt) {
  keeps_copy_ = recipe::keeps_copy(attempt.recipe.checkpoint) &&
                attempt.shape->layout().offload == recipe::Offload::kNone;
  if (!keeps_copy_) return;
  copy_bytes_ = checkpoint::copy_bytes(items());
  if (copy_bytes_ == 0) return;
  copy_ = Buffer(attempt.shape->arena(), program::MemoryClass::kCheckpoint, copy_bytes_);
  // The system hands pages out when they are first written: now, and not while a step waits.
  std::memset(copy_.data(), 0, static_cast<std::size_t>(copy_bytes_));
}

Saver::~Saver() { stop_.request_stop(); }

checkpoint::Items Saver::items() {
  const std::int64_t step = attempt_.progress.step;
  optimizer_step_ = static_cast<float>(step);
  return state_items(attempt_.rank_state(), attempt_.progress, attempt_.learning_rate_of(step),
                     optimizer_step_);
}

checkpoint::Items Saver::copied_items() {
  checkpoint::Items all = items();
  fault::point("save.copy");
  checkpoint::copy_tensors(
      all, {static_cast<std::byte*>(copy_.data()), static_cast<std::size_t>(copy_bytes_)},
      checkpoint::threads_of_rank(attempt_.input.world));
  fault::point("save.copied");
  return all;
}

void Saver::save() {
  finish();
  attempt_.input.control.set_phase("checkpoint");
  fault::point("save.begin");
  attempt_.progress.position = attempt_.loader->position();
  begin(items(), std::launch::deferred);
  finish();
  fault::point("publish.done");
}

void Saver::save_behind() {
  if (!keeps_copy_) return save();
  if (current_ && !std::exchange(said_slow_, true))
    attempt_.reporter->warn(
        fmt::format("step {}: the checkpoint of step {} is still being written, so training waits; "
                    "this is said once, and larger checkpoint.every_steps avoid it",
                    attempt_.progress.step, current_->step));
  finish();
  attempt_.input.control.set_phase("checkpoint");
  attempt_.progress.position = attempt_.loader->position();
  begin(copied_items(), std::launch::async);
}

void Saver::begin(checkpoint::Items items, std::launch how) {
  const std::int64_t step = attempt_.progress.step;
  const std::string folder = attempt_.directory.checkpoint(step);
  fault::point("save.position");
  attempt_.reporter->event(EventKind::kCheckpointStarted, {{"step", step}});
  last_try_ = Clock::now();
  try {
    current_.emplace(step, folder,
                     checkpoint::Saving(folder, std::move(items), attempt_.input.world,
                                        items_of_ranks(attempt_.rank_state())));
    turn(how);
  } catch (const EngineError& error) {
    failed(step, error);
  }
}

void Saver::turn(std::launch how) {
  turn_ = std::async(how, [this, how] {
    if (how == std::launch::async) lower_own_priority();
    work();
  });
}

// On a thread of its own, or on the main one.
void Saver::work() {
  fault::point("save.turn");
  current_->saving.work(stop_.get_token());
  fault::point("save.turn.end");
  if (!current_->saving.is_published()) return;
  fault::point("publish.prune");
  unremoved_ = checkpoint::prune(attempt_.directory.checkpoints(), attempt_.recipe.checkpoint.keep);
}

bool Saver::is_working() const {
  return current_ && turn_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void Saver::go_on() {
  if (current_) agree(std::launch::async);
}

void Saver::finish() {
  if (current_) attempt_.input.control.set_phase("checkpoint");
  while (current_) agree(std::launch::deferred);
}

void Saver::agree(std::launch next) {
  turn_.get();
  fault::point("save.agree");
  const std::int64_t step = current_->step;
  try {
    if (!current_->saving.agree()) return turn(next);
    published();
  } catch (const EngineError& error) {
    failed(step, error);
  }
  current_.reset();
}

void Saver::published() {
  attempt_.saved_step = current_->step;
  fault::point("publish.event");
  attempt_.reporter->event(EventKind::kCheckpointPublished,
                           {{"step", current_->step}, {"folder", current_->folder}});
  warn_of_unremoved();
}

// Each once: the next prune tries again.
void Saver::warn_of_unremoved() {
  for (const std::string& why : unremoved_)
    if (said_unremoved_.insert(why).second)
      attempt_.reporter->warn("an old checkpoint stays: " + why +
                              "; remove it by hand, or the disk may fill");
}

void Saver::failed(std::int64_t step, const EngineError& error) {
  if (error.error().code != ExitCode::kUnusable) throw error;
  error_ = error.what();
  attempt_.reporter->event(EventKind::kCheckpointFailed,
                           {{"step", step}, {"message", error.what()}});
}

bool Saver::is_due_by_time() const {
  const double minutes = attempt_.recipe.checkpoint.every_minutes;
  const std::chrono::duration<double> passed = Clock::now() - last_try_;
  return minutes > 0 && passed.count() >= 60 * minutes;
}

}  // namespace ptrain::train
