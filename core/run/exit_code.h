#pragma once

namespace ptrain {

// How a ptrain process ends; the same table serves worker, supervisor and the shell.
enum class ExitCode : int {
  kDone = 0,
  kBug = 1,          // our fault
  kUsage = 2,        // command line or recipe
  kEnvironment = 3,  // something outside is missing or refused, found before training
  kNothingFits = 4,  // no layout fits the machine
  kRankError = 10,   // a rank reported an error
  kRankSignal = 11,  // a rank was killed by a signal
  kOutOfMemory = 12,
  kHang = 13,
  kNodeLost = 14,    // node or link lost
  kUnusable = 15,    // training data or checkpoint unusable
  kNonFinite = 16,   // loss or gradient norm is not a number
  kStopped = 20,     // stopped on request, checkpoint written
  kPreempted = 21,   // time limit or preemption, checkpoint written
  kNoProgress = 22,  // failed again without progress: do not requeue
};

}  // namespace ptrain
