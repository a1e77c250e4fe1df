#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/result.h"
#include "core/run/directory.h"

namespace ptrain::cli {

// How a run stands, from its folder and, where it was submitted, from Slurm.
struct RunStatus {
  std::string directory;
  // queued, running, finished, stopped, failed, or interrupted (no verdict)
  std::string state;
  std::string job;               // of Slurm, submitted last, or its task; empty: none
  std::string job_state;         // in words: "waits in the queue (Resources)"
  bool parity = false;           // it compares layouts, and trains nothing
  int attempt = 0;               // 0: none was started
  std::int64_t step = 0;         // last finished
  std::int64_t num_steps = 0;    // of all shapes
  std::int64_t checkpoint = -1;  // newest
  int code = -1;                 // of the verdict; -1: none
  std::string reason;
  std::string next;
  nlohmann::json ranks;          // while it runs: what each said last (rank_board.h)
  std::string checkpoint_fault;  // what is wrong with the newest; empty: its sizes are right
};

Result<RunStatus> status_of(const run::Directory& directory);
std::string to_text(const RunStatus& status);
std::string to_line(const RunStatus& status);  // after the path, as `ptrain list` shows it
nlohmann::json to_json(const RunStatus& status);

}  // namespace ptrain::cli
