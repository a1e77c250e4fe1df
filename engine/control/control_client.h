#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/run/control.h"
#include "core/run/request.h"

namespace ptrain::control {

// What a heartbeat tells of a rank's collectives.
struct Collective {
  std::string name;      // "COMMUNICATOR VERB#SEQUENCE": begun last, or waited in; empty: none yet
  bool waiting = false;  // for other ranks, now
  double waited_s = 0;   // for other ranks, in all
};

// A rank's side of the control connection. One thread sends a heartbeat a second and hears Stop;
// the other functions may be called from any thread. When the connection closes before goodbye(),
// the process ends itself (_exit) within 2 s: a supervisor that was killed leaves no ranks behind.
// TERM, which Slurm sends to ranks and supervisor alike, ends it only where the supervisor does not
// ask for a last checkpoint within a second; all threads must have it blocked.
// Without a supervisor in the request every function does nothing.
class ControlClient {
 public:
  // Connects and says hello. Throws EngineError (kEnvironment) when the supervisor cannot be
  // reached.
  ControlClient(const run::Request& request, int rank);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // What the next heartbeats say. `phase`: starting, step, checkpoint, validation.
  void set_phase(std::string phase);
  void set_step(std::int64_t step);          // last finished
  void spent(double step_s, double data_s);  // on one more step, and in it on data
  // Each heartbeat asks `last` for the collective that it tells of, from another thread, until this
  // object is gone.
  void watch_collectives(std::function<Collective()> last);

  void step_done(const run::StepDone& done);  // also set_step(done.step)
  void event(run::EventKind kind, nlohmann::json fields = nlohmann::json::object());

  // The supervisor asked to finish the step and stop; a checkpoint first where stop().checkpoint.
  bool stop_requested() const { return stop_requested_; }
  run::Stop stop() const;

  // The last message: how this rank ends, and, with kDone, the shape of the next attempt.
  void goodbye(ExitCode code, std::string message = "", std::string next_shape = "");

 private:
  void serve();  // body of the thread
  void beat();
  void receive();
  void obey(const run::ControlMessage& message);
  void hear_term();
  void send(const run::ControlMessage& message);
  [[noreturn]] void abandon() const;

  int socket_ = -1;  // -1: no supervisor
  int term_ = -1;    // TERM, as a file
  std::atomic<bool> stop_requested_ = false;
  std::atomic<bool> closing_ = false;
  mutable std::mutex mutex_;  // guards all below
  run::Heartbeat state_;
  std::function<Collective()> last_collective_;
  run::Stop stop_;
  std::mutex send_mutex_;                                         // lines are written whole
  std::string unread_;                                            // of the thread only
  std::optional<std::chrono::steady_clock::time_point> term_at_;  // likewise
  std::thread thread_;
};

}  // namespace ptrain::control
