#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/run/plan.h"

namespace ptrain::parity {

// What a run has left in its folder.
struct RunRecord {
  std::vector<std::int64_t> steps;
  std::vector<double> losses;              // exactly as computed
  std::vector<std::int64_t> tokens_total;  // after each step
  std::vector<std::string> next_shapes;    // what each attempt asked for; the last is empty
};

// A folder of its own with a small text and the runs trained on it, removed at the end.
class RunFolders {
 public:
  RunFolders();
  ~RunFolders();
  RunFolders(const RunFolders&) = delete;
  RunFolders& operator=(const RunFolders&) = delete;

  // Two shapes, of `short_layout` and `long_layout`, eight steps in all, a checkpoint every other
  // step. Both layouts must have 4 rows a step in all.
  run::Plan plan(const mesh::Layout& short_layout, const mesh::Layout& long_layout) const;
  std::string path(const std::string& run) const { return root_ + "/" + run; }
  std::string checkpoint(const std::string& run, std::int64_t step) const;

  // Trains with ranks as threads, attempt after attempt, until all shapes are done. `from`: a
  // checkpoint to start from; empty: from nothing.
  RunRecord train(const std::string& run, const run::Plan& plan, const std::string& from) const;

 private:
  std::string root_;
};

}  // namespace ptrain::parity
