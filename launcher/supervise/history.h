#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/run/event.h"
#include "launcher/supervise/policy.h"

namespace ptrain::supervise {

// What a run remembers of its failures: events.jsonl is its only memory.
struct History {
  std::vector<Failure> failures;
  std::vector<std::string> excluded;   // nodes, in this job
  std::vector<std::string> offenders;  // nodes that were excluded twice, in any jobs
  bool operator==(const History&) const = default;
};
// `job`: the present one.
History history_of(std::span<const run::Event> events, const std::string& job);

// How many of the failures are of this job.
int num_failures_of(const History& history, const std::string& job);

// Those of `all` that are not among `some`.
std::vector<std::string> without(const std::vector<std::string>& all,
                                 const std::vector<std::string>& some);

// The nodes of a job that ranks may be on: never the excluded ones, and offenders only where fewer
// than `needed` are left without them.
std::vector<std::string> usable_nodes(const std::vector<std::string>& nodes, const History& history,
                                      int needed);

// What attempt_ended and decision tell, as history_of reads it.
nlohmann::json to_fields(const run::Verdict& verdict, const Failure& failure);
nlohmann::json to_fields(const Decision& decision, const std::string& job);

}  // namespace ptrain::supervise
