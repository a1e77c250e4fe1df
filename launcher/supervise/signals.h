#pragma once

#include <optional>

namespace ptrain::supervise {

struct StopSignal {
  int number = 0;
  bool at_once = false;  // sent by stop_at_once()
  bool operator==(const StopSignal&) const = default;
};

// Asks a supervisor to stop without a checkpoint, by one signal: between two it could save. False:
// errno.
bool stop_at_once(int pid);

// While it lives, INT, TERM, HUP, QUIT, XCPU and USR2 no longer end this process: they arrive as
// numbers to read. Alarms and their like, which mean nothing here, do nothing; nor does USR1, but
// in a Slurm job, where it is the customary warning that time is nearly up.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int file() const { return file_; }  // for poll()
  std::optional<StopSignal> next();   // never waits
  void heed_warnings() { heeds_warnings_ = true; }

 private:
  int file_ = -1;
  bool heeds_warnings_ = false;
};

}  // namespace ptrain::supervise
