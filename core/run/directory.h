#pragma once

#include <cstdint>
#include <string>

namespace ptrain::run {

// The names of all files of a run directory runs/NAME/TIME/.
struct Directory {
  std::string root;

  std::string recipe() const;   // recipe.yaml, as given
  std::string plan() const;     // plan.json
  std::string events() const;   // events.jsonl
  std::string metrics() const;  // metrics.jsonl
  std::string verdict() const;  // verdict.json
  std::string lock() const;     // held while a supervisor works on the run
  std::string job() const;      // job.json: the Slurm job that was submitted last
  std::string script() const;   // job.sh: its batch script
  std::string job_output(const std::string& job) const;  // what the script wrote
  std::string offload() const;  // where ranks keep offloaded state, each in a nameless file
  std::string trace() const;
  std::string trace(int attempt, int rank) const;
  std::string checkpoints() const;
  std::string checkpoint(std::int64_t step) const;  // checkpoints/step-00000042
  std::string parity() const;
  std::string parity(int attempt, int rank) const;    // what a rank of that attempt recorded
  std::string attempt_folder(int attempt) const;      // logs/attempt-1
  std::string attempt_plan(int attempt) const;        // the plan that attempt ran on
  std::string rank_log(int attempt, int rank) const;  // logs/attempt-1/rank-0.log
  std::string launcher_log(int attempt) const;        // what mpirun said
  std::string request(int attempt) const;             // what each of its ranks reads first
  std::string rank_board(int attempt) const;          // ranks.json: what each rank said last
};

}  // namespace ptrain::run
