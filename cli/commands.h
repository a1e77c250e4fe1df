#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/schedule/schedule.h"

namespace ptrain::cli {

// One struct and one function a subcommand; main.cc calls the one that args.h has read.

struct PlanArguments {
  std::string recipe;
  std::string cluster;  // file; empty: this machine
  bool explain = false;
  bool json = false;
  bool probe = false;     // measure this machine again
  int program_rank = -1;  // >= 0: print the program of this rank
  std::vector<std::string> overrides;
};

struct RunArguments {
  std::string recipe;
  std::string plan;       // file; empty: make one
  std::string directory;  // of the run; empty: runs/NAME/TIME
  bool dry_run = false;
  bool detach = false;  // submitted: do not follow
  bool parity = false;
  bool json = false;               // parity
  std::vector<std::string> slurm;  // overrides of cluster.slurm, from options
  std::vector<std::string> overrides;
};

struct ResumeArguments {
  std::string from;       // run directory; with a recipe: any DCP folder
  std::string recipe;     // file
  std::string directory;  // of the new run; empty: runs/NAME/TIME
  bool allow_changes = false;
  bool detach = false;             // submitted: do not follow
  std::vector<std::string> slurm;  // overrides of cluster.slurm, from options
  std::vector<std::string> overrides;
};

struct SuperviseArguments {
  std::string run;  // run directory
};

struct DataArguments {
  std::string recipe;         // file; or:
  std::string lengths;        // file with the tokens of a document a line
  std::int64_t capacity = 0;  // lengths: tokens of a row
  bool json = false;
  std::vector<std::string> overrides;
};

struct ExportArguments {
  std::string from;  // run directory, or a checkpoint of ptrain
  std::string to;    // folder that is made
  std::string dtype = "fp32";
  std::uint64_t shard_bytes = 5'000'000'000;  // of the tensors in one file
};

struct ScheduleArguments {
  std::string name;   // in the catalogue of schedules; or:
  std::string check;  // CSV file of one
  schedule::Problem problem{.num_ranks = 0, .num_virtual = 0, .num_micro_batches = 0, .costs = {}};
  bool list = false;
  bool blocking = false;  // check: sends wait for their receivers
  bool json = false;
  bool csv = false;
  bool torch_csv = false;
  std::string svg;  // file
};

struct ReportArguments {
  std::string run;  // run directory
  std::string to;   // file; empty: report.html in it
};

struct WorkerArguments {
  std::string request;  // JSON, or a file of it
};

struct PreflightNodeArguments {
  std::string run;     // run directory; empty: none is looked at
  std::string plan;    // hash of its plan
  std::string engine;  // path of the engine
  std::string hub;     // address at which the ring is told; empty: no ring
  int port = 0;
  bool gpus = false;
};

struct SeatsArguments {
  int slots = 1;  // ranks of this node
  int threads = 1;
  bool gpus = false;  // each has one
};

struct LocalCopyArguments {
  std::string engine;  // whose libraries are printed; empty: none
  std::string list;    // file: what is to be copied
  std::string to;      // folder
};

struct GuardArguments {
  std::string job;  // of Slurm
};

struct SweepArguments {};

struct DoctorArguments {};

struct InspectArguments {
  std::string run;      // run directory; for list: the folder of runs
  int rank = -1;        // logs: of this rank only
  int attempt = -1;     // logs: of this attempt; -1: the last
  bool json = false;    // status, list
  bool now = false;     // stop: without a checkpoint
  bool follow = false;  // logs: go on with what comes
};

// Each returns how the process ends, or the error that main prints.
Result<ExitCode> cmd_plan(const PlanArguments& arguments);
Result<ExitCode> cmd_run(const RunArguments& arguments);
Result<ExitCode> cmd_resume(const ResumeArguments& arguments);
Result<ExitCode> cmd_data(const DataArguments& arguments);
Result<ExitCode> cmd_export(const ExportArguments& arguments);
Result<ExitCode> cmd_schedule(const ScheduleArguments& arguments);
Result<ExitCode> cmd_report(const ReportArguments& arguments);
Result<ExitCode> cmd_supervise(const SuperviseArguments& arguments);
Result<ExitCode> cmd_worker(const WorkerArguments& arguments);
Result<ExitCode> cmd_preflight_node(const PreflightNodeArguments& arguments);
Result<ExitCode> cmd_seats(const SeatsArguments& arguments);
Result<ExitCode> cmd_local_copy(const LocalCopyArguments& arguments);
Result<ExitCode> cmd_sweep(const SweepArguments& arguments);
Result<ExitCode> cmd_guard(const GuardArguments& arguments);
Result<ExitCode> cmd_doctor(const DoctorArguments& arguments);
Result<ExitCode> cmd_status(const InspectArguments& arguments);
Result<ExitCode> cmd_logs(const InspectArguments& arguments);
Result<ExitCode> cmd_list(const InspectArguments& arguments);
Result<ExitCode> cmd_explain(const InspectArguments& arguments);
Result<ExitCode> cmd_stop(const InspectArguments& arguments);

}  // namespace ptrain::cli
