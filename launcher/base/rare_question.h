#pragma once

#include <algorithm>
#include <chrono>

namespace ptrain::base {

// A question to somebody who serves many others, such as Slurm's controller: asked the more rarely
// the longer one waits. Between two times lies a twentieth of the wait, from half a second to 20.
class RareQuestion {
 public:
  // Whether its time has come; then that of the next one is counted from now.
  bool is_due() {
    const auto now = Clock::now();
    const auto pause = std::clamp<std::chrono::duration<double>>(
        (now - start_) / 20.0, std::chrono::milliseconds(500), std::chrono::seconds(20));
    if (now - asked_ < pause) return false;
    asked_ = now;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now(), asked_{};
};

}  // namespace ptrain::base
