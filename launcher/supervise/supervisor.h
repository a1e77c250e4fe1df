#pragma once

#include <string>

#include "core/run/directory.h"
#include "core/run/event.h"
#include "core/run/plan.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/signals.h"

namespace ptrain::supervise {

struct Setup {
  run::Directory directory;
  run::Plan plan;
  const start::Backend& backend;
  std::string worker;    // absolute path of the ptrain binary
  StopSignals& signals;  // held from before anything of the run was written
};

// Runs attempt after attempt until the plan's shapes are done, the run cannot go on, or it is
// stopped. Writes events.jsonl and verdict.json and says the verdict, which may be an error of ours
// beside the ranks' own, in one line on stderr. The caller holds the run's lock.
run::Verdict supervise(const Setup& setup);

}  // namespace ptrain::supervise
