#pragma once

#include <optional>

namespace ptrain::supervise {

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
  std::optional<int> next();          // never waits
  void heed_warnings() { heeds_warnings_ = true; }

 private:
  int file_ = -1;
  bool heeds_warnings_ = false;
};

}  // namespace ptrain::supervise
