#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/run/directory.h"
#include "core/run/plan.h"
#include "launcher/preflight/judge.h"

namespace ptrain::preflight {

// The nodes of a Slurm job are looked at before ranks start on them: one step of
// `ptrain preflight-node` on each, in under a second where all is well.
struct Request {
  std::string worker;        // absolute path of ptrain
  std::string engine;        // of its engine
  std::string first_host;    // the address, as numbers, at which nodes reach us
  run::Directory directory;  // with an empty root only the machines are looked at
  std::vector<std::string> nodes;
  bool gpus = false;  // these are looked at too
};

// About what a checkpoint of the run takes: parameters and two moments of float32.
std::int64_t checkpoint_bytes(const run::Plan& plan);

// What the plan takes of each of its nodes.
Needs needs_of(const run::Plan& plan);

// Errors: the step itself could not be started.
Result<std::vector<Finding>> look_at_nodes(const Request& request, Needs needs);

// All that refuses the run, as one error (kEnvironment); else the warnings, and the nodes that do
// not answer, where these are all that is wrong.
struct Settled {
  std::vector<std::string> warnings;
  std::vector<std::string> silent;
};
Result<Settled> settle(const std::vector<Finding>& findings);

}  // namespace ptrain::preflight
