#pragma once

#include <chrono>
#include <string>

#include "engine/train/attempt.h"

namespace ptrain::train {

// Writes an attempt's checkpoints and tells how that went.
class Saver {
 public:
  // The attempt is open.
  explicit Saver(Attempt& attempt) : attempt_(attempt) {}

  // After the step that is finished. A checkpoint that cannot be written costs no training: it is
  // said loudly and tried again later. Collective over the world.
  void save();

  // Whether checkpoint.every_minutes have passed since the last try; the clock of this rank.
  bool is_due_by_time() const;
  bool has_saved_all() const { return attempt_.saved_step == attempt_.progress.step; }
  // Why the last checkpoint could not be written.
  const std::string& error() const { return error_; }

 private:
  using Clock = std::chrono::steady_clock;
  void publish(const std::string& folder);

  Attempt& attempt_;
  Clock::time_point last_try_ = Clock::now();
  std::string error_;
};

}  // namespace ptrain::train
