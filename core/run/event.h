#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::run {

enum class EventKind {
  kRunCreated,
  kPlanChosen,
  kAttemptStarted,
  kRankReady,
  kShapeStarted,
  kShapeFinished,
  kCheckpointStarted,
  kCheckpointPublished,
  kCheckpointFailed,
  kValidation,
  kWarning,
  kStopRequested,
  kRankLost,
  kHangSuspected,
  kAttemptEnded,
  kDecision,
  kRunEnded,
};

std::string_view to_string(EventKind kind);  // "run_created", ...
Result<EventKind> event_kind_from(std::string_view text);

// One line of events.jsonl: v, time, mono_s, attempt, rank, kind, then the fields of the kind.
struct Event {
  EventKind kind = EventKind::kWarning;
  std::string time;   // UTC, ISO 8601
  double mono_s = 0;  // seconds since the supervisor started
  int attempt = 0;
  int rank = -1;  // -1: the supervisor
  nlohmann::json fields = nlohmann::json::object();
  bool operator==(const Event&) const = default;
};

nlohmann::json to_json(const Event& event);
Result<Event> event_from_json(const nlohmann::json& json);

// verdict.json: how the run ended.
struct Verdict {
  ExitCode code = ExitCode::kDone;
  std::string reason;  // one line: what happened
  std::string next;    // what to do
  int attempt = 0;
  int rank = -1;                        // the first that failed
  int signal = 0;                       // that killed it
  std::int64_t step = 0;                // last finished
  std::vector<std::string> nodes = {};  // of that rank, or those that were lost
  double held_s = 0;                    // that the supervisor held its machines, in this job
  double trained_s = 0;                 // of these, in steps that lasted
  bool operator==(const Verdict&) const = default;
};

// A code of the table, or 128 + signal; others are refused.
Result<ExitCode> exit_code_from(int code);

nlohmann::json to_json(const Verdict& verdict);
Result<Verdict> verdict_from_json(const nlohmann::json& json);

}  // namespace ptrain::run
