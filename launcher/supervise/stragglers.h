#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/control.h"

namespace ptrain::supervise {

// Finds the rank that holds the others up, by what heartbeats say: where one computes while the
// others wait for it in their collectives, again and again. Ranks that only exchange little, and
// runs in which all wait alike, give no news.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> nodes);  // of each rank

  void hear(int rank, const run::Heartbeat& beat);

  // A rank that has begun to stand out, in words; once for each.
  std::optional<std::string> news();

 private:
  struct Looks {
    int num = 0, waiting = 0;
    double share() const { return static_cast<double>(waiting) / num; }
  };

  std::vector<std::string> nodes_;
  std::vector<Looks> ranks_;
  int told_ = -1;  // of this rank already
};

}  // namespace ptrain::supervise
