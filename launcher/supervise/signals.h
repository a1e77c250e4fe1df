#pragma once

#include <optional>

namespace ptrain::supervise {

// While it lives, INT, TERM, HUP, QUIT, XCPU and USR2 no longer end this process: they arrive as
// numbers to read. USR1, alarms and their like, which mean nothing here, do nothing.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int file() const { return file_; }  // for poll()
  std::optional<int> next();          // never waits

 private:
  int file_ = -1;
};

}  // namespace ptrain::supervise
