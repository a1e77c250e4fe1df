// An engine without tensors for tests of starting and watching: its ranks count steps and, told by
// the environment, fail in a chosen way.
//   PTRAIN_FAKE="RANK:ACTION@STEP,..."  actions: exitCODE raiseSIGNAL error oom kill segv freeze
//                                       stall lag; deaf (busy, and TERM does nothing); helper
//                                       (starts a child that TERM does not end, and goes on)
//   PTRAIN_FAKE_SHOW                    variables, by commas, whose values each rank writes to its
//                                       log
//   PTRAIN_FAKE_TALK                    a line to the log a step, and half a line at the end
//   PTRAIN_FAKE_START                   slow: it never gets to its first step
//   PTRAIN_FAKE_STEP_MS                 milliseconds of a step (20)
//   PTRAIN_FAKE_ONCE                    file: an action happens only while it is absent, and makes
// it
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "core/dcp/metadata.h"
#include "core/run/build_id.h"
#include "core/run/directory.h"
#include "core/run/manifest.h"
#include "core/run/plan.h"
#include "core/run/request.h"
#include "engine/base/engine_error.h"
#include "engine/base/plan_file.h"
#include "engine/control/control_client.h"
#include "engine/entry.h"

namespace {

using namespace ptrain;

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// The action of this rank before `step`, or empty.
std::string action_at(int rank, std::int64_t step) {
  std::string script = variable("PTRAIN_FAKE") + ",";
  for (std::size_t start = 0, end = 0; (end = script.find(',', start)) != std::string::npos;
       start = end + 1) {
    const std::string one = script.substr(start, end - start);
    const auto colon = one.find(':'), at = one.find('@');
    if (colon == std::string::npos || at == std::string::npos) continue;
    if (std::stoi(one) == rank && std::stoll(one.substr(at + 1)) == step)
      return one.substr(colon + 1, at - colon - 1);
  }
  return "";
}

// Outlives the client that asks for it.
struct LastCollective {
  std::atomic<std::int64_t> sequence = 0;
  std::atomic<bool> waiting = false;
};
LastCollective& last_collective() {
  static LastCollective last;
  return last;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

[[noreturn]] void turn_for_ever() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  for (std::atomic<int> turns = 0;;) ++turns;
}

// In a session of its own, as a data loader or a logger may be.
void start_helper() {
  if (::fork() != 0) return;
  ::setsid();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  sleep_for_ever();
}

void talk(const std::string& text) {
  if (!variable("PTRAIN_FAKE_TALK").empty()) std::printf("%s", text.c_str());
}

void act(const std::string& action) {
  const std::string once = variable("PTRAIN_FAKE_ONCE");
  if (action.empty() || (!once.empty() && ::access(once.c_str(), F_OK) == 0)) return;
  if (!once.empty()) ::close(::open(once.c_str(), O_CREAT | O_WRONLY, 0600));
  std::fprintf(stderr, "fake: %s\n", action.c_str());
  if (action.starts_with("exit")) ::_exit(std::stoi(action.substr(4)));
  if (action.starts_with("raise")) ::raise(std::stoi(action.substr(5)));
  if (action == "error") throw EngineError(ExitCode::kNonFinite, "the loss is not a number");
  if (action == "kill") ::raise(SIGKILL);
  if (action == "segv") ::raise(SIGSEGV);
  if (action == "freeze") ::raise(SIGSTOP);
  if (action == "oom") throw EngineError(ExitCode::kOutOfMemory, "this rank is out of memory");
  if (action == "lag") last_collective().waiting = true;  // in the collective that it began last
  if (action == "stall" || action == "lag") sleep_for_ever();
  if (action == "deaf") turn_for_ever();
  if (action == "helper") return start_helper();
  throw EngineError(ExitCode::kUsage, "the fake engine does not know '" + action + "'");
}

// Of the newest checkpoint; 0: there is none.
std::int64_t saved_step(const run::Directory& directory) {
  std::int64_t step = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.checkpoints()))
    step = std::max<std::int64_t>(step, std::stoll(entry.path().filename().string().substr(5)));
  return step;
}

// Ranks keep step with one another, as the ranks of a real run do: each writes its step to a file
// that all map, and waits for the others.
class Barrier {
 public:
  Barrier(const run::Request& request, int num_ranks)
      : path_(run::Directory{request.run_directory}.attempt_folder(request.attempt) + "/steps"),
        num_ranks_(num_ranks) {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, kBytes) != 0) std::abort();
    steps_ = static_cast<std::atomic<std::int64_t>*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }

  void wait(int rank, std::int64_t step) {
    steps_[rank] = step;
    for (int other = 0; other < num_ranks_; ++other)
      while (steps_[other] < step) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Any rank that heard of a stop makes all stop, after the same step.
  void stop(bool asked) {
    if (asked) steps_[kStop] = 1;
  }
  bool stopped() const { return steps_[kStop] != 0; }

 private:
  static constexpr int kStop = 511;
  static constexpr std::size_t kBytes = 4096;
  std::string path_;
  int num_ranks_;
  std::atomic<std::int64_t>* steps_;
};

struct Span {
  std::int64_t last = 0;  // step of this shape
  std::string next_shape;
};

Span span_of(const run::Plan& plan, const std::string& shape) {
  Span span;
  const auto& shapes = plan.recipe.shapes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    span.last += shapes[i].steps;
    if (shapes[i].name != shape) continue;
    if (i + 1 < shapes.size()) span.next_shape = shapes[i + 1].name;
    return span;
  }
  throw EngineError(ExitCode::kBug, "no shape " + shape);
}

// A whole checkpoint, with nothing in it.
void save(const run::Request& request, int rank, std::int64_t step) {
  if (rank != 0) return;
  const std::string folder = run::Directory{request.run_directory}.checkpoint(step);
  std::filesystem::create_directories(folder);
  const auto metadata = dcp::write_metadata({});
  std::ofstream(folder + "/.metadata", std::ios::binary)
      .write(reinterpret_cast<const char*>(metadata.data()), std::ssize(metadata));
  std::ofstream(folder + "/" + run::kManifestName) << R"({"files": {}})";
}

void train(const run::Request& request, int rank, control::ControlClient& control) {
  const run::Directory directory{request.run_directory};
  const auto plan = read_plan(directory.attempt_plan(request.attempt));
  const Span span = span_of(plan, request.shape);
  const std::int64_t every = plan.recipe.checkpoint.every_steps;
  const auto time = std::chrono::milliseconds(std::stoi(variable("PTRAIN_FAKE_STEP_MS", "20")));
  Barrier barrier(request, static_cast<int>(plan.ranks.size()));
  LastCollective& collective = last_collective();
  control.watch_collectives([&collective] {
    if (collective.sequence == 0) return control::Collective{};
    return control::Collective{"world all_reduce#" + std::to_string(collective.sequence),
                               collective.waiting};
  });
  if (variable("PTRAIN_FAKE_START") == "slow") sleep_for_ever();
  std::istringstream names(variable("PTRAIN_FAKE_SHOW"));
  for (std::string name; std::getline(names, name, ',');)
    std::printf("%s=[%s]\n", name.c_str(), variable(name.c_str()).c_str());
  control.set_phase("step");
  if (rank == 0)
    control.event(run::EventKind::kShapeStarted,
                  {{"shape", request.shape}, {"step", saved_step(directory)}});
  for (std::int64_t step = saved_step(directory) + 1; step <= span.last; ++step) {
    act(action_at(rank, step));
    collective.sequence = step;
    collective.waiting = true;
    barrier.wait(rank, 2 * step);
    collective.waiting = false;
    std::this_thread::sleep_for(time);
    control.set_step(step);
    talk("step " + std::to_string(step) + " is done\n");
    if (rank == 0) {
      run::StepDone done{step, request.shape, 1.0 / static_cast<double>(step)};
      done.step_s = std::chrono::duration<double>(time).count();
      control.step_done(done);
    }
    if (every > 0 && step % every == 0) save(request, rank, step);
    barrier.stop(control.stop_requested());
    barrier.wait(rank, 2 * step + 1);
    if (!barrier.stopped()) continue;
    save(request, rank, step);
    talk("and half a li");
    return control.goodbye(ExitCode::kStopped);
  }
  save(request, rank, span.last);
  control.goodbye(ExitCode::kDone, "", span.next_shape);
}

int run_rank(const run::Request& request, int rank) {
  control::ControlClient control(request, rank);
  try {
    train(request, rank, control);
    return 0;
  } catch (const EngineError& error) {
    std::fprintf(stderr, "fake: error: %s\n", error.what());
    control.goodbye(error.error().code, error.what());
    return static_cast<int>(error.error().code);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int ptrain_engine_main(const char* build_id,
                                                                         const char* text) {
  if (build_id != run::build_id()) {
    std::fprintf(stderr, "this engine belongs to another build\n");
    return static_cast<int>(ExitCode::kEnvironment);
  }
  const auto request = run::request_from_json_text(text);
  if (!request || request->mode != run::Mode::kTrain) return 3;
  const std::string by_mpirun = variable("OMPI_COMM_WORLD_RANK", "0");
  return run_rank(*request, std::stoi(variable("PMIX_RANK", by_mpirun.c_str())));
}
