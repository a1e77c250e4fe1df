#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/program/action.h"
#include "engine/execute/executor.h"

namespace ptrain::train {

// What one rank did in the first steps of an attempt, as a Chrome trace (for chrome://tracing or
// Perfetto): a span an action, named by the action's text; pid is the rank, tid the lane, times are
// microseconds since 1970. args: the step, and of an exchange within a layer the bytes that this
// rank hands in. The file is whole after every step.
class Trace {
 public:
  // Watches the executor, which must outlive it, for `num_steps` steps. EngineError when the file
  // cannot be written.
  Trace(execute::Executor& executor, const std::string& path, int rank, std::int64_t num_steps);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Writes the spans since the last call. After the last step of the trace it does nothing.
  void step_done(std::int64_t step);

 private:
  using Clock = std::chrono::steady_clock;
  struct Begun {
    Clock::time_point at;
    std::int64_t bytes = 0;  // of an exchange; 0: not told
  };
  struct Span {
    const program::Action* action;
    Begun begin;
    Clock::time_point end;
  };
  void observe(const program::Action& action, bool begins);
  void name_rows();
  std::string event_of(const Span& span, std::int64_t step) const;
  void append(const std::string& event);
  void end_file();
  double microseconds(Clock::time_point time) const;

  execute::Executor& executor_;
  int rank_;
  std::int64_t steps_left_;
  std::string path_;
  std::ofstream file_;
  bool is_empty_ = true;
  Clock::time_point start_ = Clock::now();
  std::chrono::system_clock::time_point start_date_ = std::chrono::system_clock::now();
  std::mutex mutex_;            // of all below: copies are told by their own thread
  std::map<int, Begun> begun_;  // by action id
  std::vector<Span> spans_;     // of this step, by their end
};

}  // namespace ptrain::train
