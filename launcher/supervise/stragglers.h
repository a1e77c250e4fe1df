#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/run/control.h"

namespace ptrain::supervise {

// Finds what holds all ranks up, by what heartbeats say: a rank that computes or reads data while
// the others wait for it in their collectives; or, where all wait alike, a node whose network is
// slow. Ranks that only exchange little give no news.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> nodes);  // of each rank

  void hear(int rank, const run::Heartbeat& beat);

  // What has begun to stand out, in words; once for each rank or node.
  std::optional<std::string> news();

 private:
  // What a rank's heartbeats within steps say, in all.
  struct Looks {
    int num_beats = 0;
    std::int64_t num_steps = 0;
    double steps_s = 0, data_s = 0, waited_s = 0, round_trips_s = 0;
    run::Heartbeat last;  // of any phase

    double share() const { return steps_s > 0 ? waited_s / steps_s : 0; }  // that it waits
    double round_trip_s() const { return round_trips_s / num_beats; }
    double data_of_step_s() const { return data_s / static_cast<double>(num_steps); }
    double compute_of_step_s() const;
  };

  bool has_enough() const;
  std::optional<std::string> slow_rank(double middle_share);
  std::optional<std::string> slow_network(double middle_share);
  std::string cause(const Looks& rank) const;

  std::vector<std::string> nodes_;
  std::vector<Looks> ranks_;
  std::set<int> told_;                // of these ranks already
  std::set<std::string> told_nodes_;  // likewise
};

}  // namespace ptrain::supervise
