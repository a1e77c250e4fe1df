#pragma once

#include <memory>
#include <string>

#include "core/run/directory.h"
#include "core/run/plan.h"
#include "launcher/recipe/reader.h"
#include "launcher/start/backend.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/signals.h"

namespace ptrain::cli {

// Where a new run goes: the folder asked for, or runs/NAME/TIME, with a number behind it where that
// is taken.
std::string new_run_path(const std::string& directory, const std::string& name);

// Whether write_run could make that folder, asked before anything costly is done.
Status check_run_path(const std::string& directory, const std::string& name);

// What starts the plan's ranks from here.
Result<std::unique_ptr<start::Backend>> backend_of(const run::Plan& plan);

// The same, once all is there to start them: mpirun or srun, the engine, GPUs that work where ranks
// need some. Asked once, before anything is written.
Result<std::unique_ptr<start::Backend>> check_start(const run::Plan& plan);

// Makes the run directory, the given one or else a new one, with recipe, plan and first events; all
// of it or nothing.
Result<run::Directory> write_run(const std::string& given, const recipe::LoadedRecipe& loaded,
                                 const run::Plan& plan);

// A run that may begin: `backend` is that of check_start.
struct Startable {
  const run::Directory& directory;
  const run::Plan& plan;
  const start::Backend& backend;
  std::string task = {};       // of a job array that goes on with this run; empty: it is none
  std::string next_task = {};  // the one after it, where there is one
};

// Supervises attempts until the run ends. The lock is the run's, so that no other ptrain works on
// it; `signals` are held since before it was written, so that none leaves it without a verdict.
// `by_hand`: someone may press Ctrl-C, as nobody can in a batch script.
Result<ExitCode> start_run(const Startable& run, const supervise::RunLock& lock,
                           supervise::StopSignals& signals, bool by_hand = true);

// The exact command that starts the ranks of the plan's first shape, for --dry-run.
Result<std::string> start_command(const run::Directory& directory, const run::Plan& plan);

}  // namespace ptrain::cli
