#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/arena.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/saving.h"
#include "engine/train/attempt.h"

namespace ptrain::train {

// Writes an attempt's checkpoints and tells how that went. Those within a shape are copied at the
// end of their step; a thread of low priority writes the copy while training goes on, and the ranks
// agree on it between later steps, since only the main thread may communicate. A checkpoint that
// cannot be written costs no training: it is said loudly and tried again later.
class Saver {
 public:
  // The attempt is open. Takes the memory for copies, where the recipe wants them.
  explicit Saver(Attempt& attempt);
  // What is still being written is given up.
  ~Saver();

  // After the step that is finished, in place when it returns. Collective over the world.
  void save();
  // The same, written behind training where there is memory for a copy. When an earlier one is not
  // in place yet, that is waited for. Collective over the world.
  void save_behind();

  // Whether this rank works on a checkpoint behind training.
  bool is_working() const;
  // When no rank is working: agrees on what was done and begins what is next. Collective over the
  // world.
  void go_on();
  // Waits until the checkpoint behind training is in place. Collective over the world.
  void finish();

  // Whether checkpoint.every_minutes have passed since the last try; the clock of this rank.
  bool is_due_by_time() const;
  bool has_saved_all() const { return attempt_.saved_step == attempt_.progress.step; }
  // Why the last checkpoint could not be written.
  const std::string& error() const { return error_; }

 private:
  using Clock = std::chrono::steady_clock;
  // One checkpoint on its way.
  struct Current {
    std::int64_t step;
    std::string folder;
    checkpoint::Saving saving;
  };
  checkpoint::Items items();
  checkpoint::Items copied_items();
  void begin(checkpoint::Items items, std::launch how);
  void turn(std::launch how);
  void work();
  void agree(std::launch next);
  void published();
  void warn_of_unremoved();
  void failed(std::int64_t step, const EngineError& error);

  Attempt& attempt_;
  bool keeps_copy_ = false;
  Buffer copy_;  // none on a rank that writes no tensors
  std::int64_t copy_bytes_ = 0;
  float optimizer_step_ = 0;  // read by a save until it is in place
  Clock::time_point last_try_ = Clock::now();
  bool said_slow_ = false;
  std::string error_;
  std::vector<std::string> unremoved_;  // of the newest prune
  std::set<std::string> said_unremoved_;
  std::optional<Current> current_;
  std::stop_source stop_;
  std::future<void> turn_;  // of `current_`; its end is waited for before the rest goes
};

}  // namespace ptrain::train
