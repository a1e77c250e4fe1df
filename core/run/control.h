#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/run/event.h"

namespace ptrain::run {

// The control connection: JSON lines over TCP between each rank and the supervisor.
// A rank's first line is Hello; a line that cannot be read, or a wrong token, ends the connection.

// Rank -> supervisor.
struct Hello {
  std::string token;
  int attempt = 0;
  int rank = 0;
  int pid = 0;
  std::string host;
  std::string build;
  std::string cpus = {};  // that it may run on, as the kernel numbers them: "0-3,8"
  bool operator==(const Hello&) const = default;
};

// Every second; `phase` names what the rank is in (starting, step, checkpoint, validation).
struct Heartbeat {
  std::int64_t step = 0;
  std::string phase;
  std::string collective;  // "COMMUNICATOR VERB#SEQUENCE": begun last, or the one it waits in
  bool waiting = false;    // for other ranks, in `collective`
  std::int64_t resident_bytes = 0;
  // Seconds since the attempt began: in steps, and of these for data and waiting for other ranks.
  double steps_s = 0, data_s = 0, waited_s = 0;
  double round_trip_s = 0;  // until the supervisor's machine acknowledges; 0: not known
  bool operator==(const Heartbeat&) const = default;
};

// A step is finished (rank 0 only): what the progress line shows; the same numbers as
// metrics.jsonl.
struct StepDone {
  std::int64_t step = 0;
  std::string shape;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  std::int64_t tokens = 0, tokens_total = 0;
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  std::int64_t bytes_peak = 0;
  bool operator==(const StepDone&) const = default;
};

// Something for events.jsonl.
struct EventMessage {
  EventKind kind = EventKind::kWarning;
  nlohmann::json fields = nlohmann::json::object();
  bool operator==(const EventMessage&) const = default;
};

// The rank is about to end.
struct Goodbye {
  ExitCode code = ExitCode::kDone;
  std::string message;
  std::string next_shape;  // with kDone: the shape that the next attempt runs, or empty
  bool operator==(const Goodbye&) const = default;
};

// Supervisor -> rank.
struct Stop {
  bool checkpoint = true;  // finish the step and save first
  std::string reason;
  bool operator==(const Stop&) const = default;
};

// Supervisor -> rank: write to the log where each thread is.
struct ShowStacks {
  bool operator==(const ShowStacks&) const = default;
};

// A longer line, or one that nests deeper, ends the connection.
inline constexpr std::size_t kMaxControlLine = 65536;
inline constexpr int kMaxControlDepth = 16;

using ControlMessage =
    std::variant<Hello, Heartbeat, StepDone, EventMessage, Goodbye, Stop, ShowStacks>;

// JSON, one line, '\n' at its end. Texts so long that the line would end the connection are cut.
std::string to_line(const ControlMessage& message);
Result<ControlMessage> message_from_line(std::string_view line);

}  // namespace ptrain::run
