#include "engine/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "core/run/build_id.h"
#include "core/run/directory.h"
#include "core/run/plan.h"
#include "core/run/request.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/plan_file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors_export.h"
#include "engine/comm/bootstrap_pmix.h"
#include "engine/comm/communicator.h"
#include "engine/control/control_client.h"
#include "engine/data/index.h"
#include "engine/data/vocabulary.h"
#include "engine/probe/probe.h"
#include "engine/train/parity.h"
#include "engine/train/trainer.h"

namespace ptrain {
namespace {

// An error as an outcome: the rank's log gets the whole text, the supervisor the message.
train::Outcome outcome_of(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  return {error.code, error.hint.empty() ? error.message : error.message + " (" + error.hint + ")",
          ""};
}

// The GPU of a rank on its node; -1: none.
int gpu_of(const run::Plan& plan, int rank) {
  const auto place = std::ranges::find(plan.ranks, rank, &run::RankPlace::rank);
  return place == plan.ranks.end() ? -1 : place->gpu;
}

train::Outcome run_training(const run::Request& request, comm::Communicator& world,
                            control::ControlClient& control) {
  fault::point("start.plan.read");
  const run::Plan plan =
      read_plan(run::Directory{request.run_directory}.attempt_plan(request.attempt));
  fault::point("start.plan.ready");
  device::open(gpu_of(plan, world.rank()));
  const train::TrainInput input{request, plan, world, control};
  return request.mode == run::Mode::kParity ? train::record_parity(input) : train::train(input);
}

// Measures this machine; rank 0 writes the figures to the request's output.
train::Outcome run_probe(const run::Request& request, comm::Communicator& world) {
  const std::string figures = probe::run_probe(world).dump(2);
  if (world.rank() == 0) {
    std::ofstream file(request.output);
    file << figures << '\n';
    if (!file.flush())
      throw EngineError(ExitCode::kEnvironment,
                        "cannot write the probe's figures to " + request.output,
                        "the cache folder must be writable");
  }
  return {};
}

nlohmann::json side_of(const std::string& index, std::int64_t documents, std::int64_t tokens) {
  return {{"index", index}, {"documents", documents}, {"tokens", tokens}};
}

// Builds what is missing of the token index; needs no other rank.
train::Outcome run_data(const run::Request& request) {
  const run::Plan plan = read_plan(run::Directory{request.run_directory}.plan());
  const auto files = data::prepare_index(plan.recipe.data, plan.recipe_folder);
  const auto train = data::open_index(files.train);
  const auto validation = files.validation.empty() ? nullptr : data::open_index(files.validation);
  data::check_vocabulary(*train, validation.get(), plan.recipe);
  nlohmann::json result{{"skipped_files", files.skipped_files}};
  result["train"] = side_of(files.train, files.train_documents, files.train_tokens);
  if (!files.validation.empty())
    result["validation"] =
        side_of(files.validation, files.validation_documents, files.validation_tokens);
  std::ofstream file(request.output);
  file << result.dump() << '\n';
  if (!file.flush())
    throw EngineError(ExitCode::kEnvironment, "cannot write " + request.output,
                      "its folder must be writable");
  return {};
}

// Where relative paths of a run's recipe start; a checkpoint may have left its run.
std::string recipe_folder_of(const std::string& run_directory) {
  const std::string plan = run::Directory{run_directory}.plan();
  std::error_code gone;
  return std::filesystem::is_regular_file(plan, gone) ? read_plan(plan).recipe_folder : "";
}

void export_source(const checkpoint::Source& source, const run::Request& request,
                   const std::string& run_directory) {
  const checkpoint::ExportTarget target{request.output, request.exporting.dtype,
                                        request.exporting.shard_bytes,
                                        recipe_folder_of(run_directory)};
  const auto exported = checkpoint::export_checkpoint(source, target);
  for (const auto& file : exported.copied)
    fmt::print(stderr, "copied {} as {}\n", file.from, file.name);
  if (!exported.note.empty()) fmt::print(stderr, "warning: {}\n", exported.note);
}

void write_export(const run::Request& request, comm::Communicator& world) {
  if (const std::string& checkpoint = request.exporting.checkpoint; !checkpoint.empty()) {
    const auto checkpoints = std::filesystem::path(checkpoint).parent_path();
    return export_source(checkpoint::Source(checkpoint, world), request, checkpoints.parent_path());
  }
  const std::string folder = run::Directory{request.run_directory}.checkpoints();
  const auto newest = checkpoint::open_newest(folder, world);
  for (const std::string& why : newest.damaged)
    fmt::print(stderr, "warning: a checkpoint is damaged, so an older one is exported: {}\n", why);
  if (!newest.source)
    throw EngineError(ExitCode::kUnusable, "there is no checkpoint in " + folder,
                      "export after the first one is written");
  export_source(*newest.source, request, request.run_directory);
}

// Writes the weights of a checkpoint as a Hugging Face folder; needs no other rank.
train::Outcome run_export(const run::Request& request) {
  const auto world = comm::make_single();
  write_export(request, *world);
  world->close();
  return {};
}

train::Outcome run_request(const run::Request& request, comm::Communicator& world,
                           control::ControlClient& control) {
  switch (request.mode) {
    case run::Mode::kTrain:
    case run::Mode::kParity:
      return run_training(request, world, control);
    case run::Mode::kProbe:
      return run_probe(request, world);
    case run::Mode::kData:
    case run::Mode::kExport:
      break;
  }
  throw EngineError(ExitCode::kUsage, "this engine has no mode for the request");
}

// Everything that a rank can die of, once: the exception becomes an exit code and a goodbye.
template <class Body>
train::Outcome guarded(Body body) {
  try {
    return body();
  } catch (const EngineError& error) {
    return outcome_of(error.error());
  } catch (const std::bad_alloc&) {
    return outcome_of(
        {ExitCode::kOutOfMemory,
         "this rank is out of memory",
         "fewer ranks a node, a smaller micro_batch or parallel.recompute=selective or full",
         {}});
  } catch (const std::exception& error) {
    return outcome_of({ExitCode::kBug, error.what(), "please report this with the rank's log", {}});
  }
}

int run_rank(const run::Request& request) {
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<control::ControlClient> control;
  train::Outcome outcome = guarded([&] {
    fault::point("start.identify");
    const comm::Identity identity = comm::identify();
    fault::point("start.identified");
    control = std::make_unique<control::ControlClient>(request, identity.rank);
    fault::point("start.mpi");
    world = identity.size > 1 ? comm::make_mpi({}) : comm::make_single();
    fault::point("start.mpi.ready");
    control->watch_collectives([&world] {
      const comm::CollectiveMark mark = world->last_collective();
      if (mark.sequence == 0) return control::Collective{};
      return control::Collective{
          fmt::format("{} {}#{}", mark.communicator, mark.verb, mark.sequence), mark.waiting,
          world->seconds_waited()};
    });
    return run_request(request, *world, *control);
  });
  fault::point("next.goodbye");
  if (control != nullptr) control->goodbye(outcome.code, outcome.message, outcome.next_shape);
  control.reset();  // its thread asks the world for collectives
  const bool ended_together = outcome.code == ExitCode::kDone || outcome.code == ExitCode::kStopped;
  if (world != nullptr && ended_together) {
    fault::point("next.world_close");
    world->close();
    fault::point("next.leave");
    comm::leave();
    fault::point("next.left");
  }
  // After a failure a peer may be gone: nothing that needs all ranks, such as closing, can be done.
  if (!ended_together) (void)world.release();
  // A good end is told by goodbye() alone: mpirun would kill the others for any other code than 0.
  return ended_together ? 0 : static_cast<int>(outcome.code);
}

}  // namespace
}  // namespace ptrain

extern "C" __attribute__((visibility("default"))) int ptrain_engine_main(const char* build_id,
                                                                         const char* request_json) {
  using namespace ptrain;
  if (build_id != run::build_id()) {
    fmt::print(stderr, "error: the engine is of build {}, ptrain of build {}\n  build both again\n",
               run::build_id(), build_id);
    return static_cast<int>(ExitCode::kEnvironment);
  }
  const auto request = run::request_from_json_text(request_json);
  if (!request) {
    fmt::print(stderr, "error: {}\n", request.error().message);
    return static_cast<int>(request.error().code);
  }
  fault::point("start.entry");
  if (request->mode == run::Mode::kData)
    return static_cast<int>(guarded([&] { return run_data(*request); }).code);
  if (request->mode == run::Mode::kExport)
    return static_cast<int>(guarded([&] { return run_export(*request); }).code);
  return run_rank(*request);
}
