#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/run/control.h"

namespace ptrain::supervise {

struct ProgressStyle {
  bool redraw = false;  // a terminal: one line that changes in place
  bool colour = false;
  int width = 80;  // columns
};

// A terminal redraws one line; NO_COLOR, CI, TERM=dumb or a pipe get plain lines without escapes.
ProgressStyle style_of(std::FILE* stream);

// One step as text. Plain:
//   step 40/1500 short  loss 2.1042  lr 1.2e-03  12.3k tokens/s  MFU 31.0%  1.2 GiB  3m05s left
// On a terminal the same with a bar in front, cut to the width, ready to be overwritten.
std::string render(const run::StepDone& done, std::int64_t num_steps, double left_s,
                   const ProgressStyle& style);

// Shows the steps of a run as they come, with the time left by the pace of the latest ones: on a
// terminal all of them, else the first and every `every_steps`-th.
class Progress {
 public:
  Progress(std::FILE* stream, std::int64_t num_steps, std::int64_t every_steps);

  void show(const run::StepDone& done);
  void say(const std::string& line);  // a line of its own, above the bar; escaped here
  void finish();                      // leaves the bar where it is and starts a new line

 private:
  bool redraw_is_due();

  std::FILE* stream_;
  ProgressStyle style_;
  std::int64_t num_steps_;
  std::int64_t every_steps_;
  double pace_s_ = 0;  // of a step, smoothed
  std::chrono::steady_clock::time_point drawn_at_{};
  bool drawn_ = false;
  bool told_ = false;
};

}  // namespace ptrain::supervise
