#pragma once

#include <vector>

#include "core/program/pipeline.h"

namespace ptrain::program {

// One stream on its way from a pipeline rank to another: the output of a stage's F, or the gradient
// that its B or I makes. Steps are positions in the lists of the schedule.
struct Transfer {
  bool forward = true;
  int sender = 0;
  int receiver = 0;
  int micro_batch = 0;
  int from_stage = 0;
  int to_stage = 0;
  int made = 0;    // the sender's step that makes it
  int used = 0;    // the receiver's step that needs it
  int posted = 0;  // the receiver's step before which it must stand ready
};

// All transfers from or to `rank`. Those of one sender, receiver and direction are in the order in
// which they are made, and are received in that order: each stands ready as late as this allows,
// but one step before it is needed, so that it arrives beside that step.
std::vector<Transfer> transfers_of(const Pipeline& pipeline, int rank);

}  // namespace ptrain::program
