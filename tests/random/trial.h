#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/parity/trajectory.h"
#include "tests/random/case.h"

namespace ptrain::random {

struct TrialOptions {
  bool repeats = false;  // once more, to the same bits
};

// Trains cases and says what is wrong with each, in lines; nothing where all is as it must be: what
// one process computes (losses, norms, gradients, parameters), the bytes that were predicted.
class Trials {
 public:
  std::vector<std::string> run(const Case& one, const TrialOptions& options);
  // With `world` as the ranks: what is found is told on rank 0. The bits of ranks as threads.
  std::vector<std::string> run_on(comm::Communicator& world, const Case& one);

  // The first of the plainer cases that fail as well, on and on; the case itself where none does.
  Case shrink(Case failing);

 private:
  const parity::Trajectory& truth(const Case& one);

  // Of the run on one rank that is kept: what it trained, and in which dtypes by layer.
  std::pair<std::string, std::vector<DType>> problem_;
  parity::Trajectory truth_;
};

}  // namespace ptrain::random
