#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/run/control.h"

namespace ptrain::supervise {

// Finds what holds all ranks up, by what heartbeats say: a rank that computes or reads data while
// the others wait for it in their collectives, again and again; or, where all wait alike, a node
// whose network is slow. Ranks that only exchange little give no news.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> nodes);  // of each rank

  void hear(int rank, const run::Heartbeat& beat);

  // What has begun to stand out, in words; once for each rank or node.
  std::optional<std::string> news();

 private:
  struct Looks {
    int num = 0, waiting = 0;
    run::Heartbeat first, last;
    double round_trips_s = 0;

    double share() const { return static_cast<double>(waiting) / num; }
    double round_trip_s() const { return round_trips_s / num; }
    double data_s() const;     // of a step
    double compute_s() const;  // likewise
  };

  std::optional<std::string> slow_rank(double middle_share);
  std::optional<std::string> slow_network(double middle_share);
  std::string cause(const Looks& rank) const;

  std::vector<std::string> nodes_;
  std::vector<Looks> ranks_;
  std::set<int> told_;                // of these ranks already
  std::set<std::string> told_nodes_;  // likewise
};

}  // namespace ptrain::supervise
