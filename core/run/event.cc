#include "core/run/event.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/run/json_fields.h"

namespace ptrain::run {

namespace {

constexpr int kVersion = 1;

constexpr std::array<std::pair<EventKind, std::string_view>, 17> kKinds{{
    {EventKind::kRunCreated, "run_created"},
    {EventKind::kPlanChosen, "plan_chosen"},
    {EventKind::kAttemptStarted, "attempt_started"},
    {EventKind::kRankReady, "rank_ready"},
    {EventKind::kShapeStarted, "shape_started"},
    {EventKind::kShapeFinished, "shape_finished"},
    {EventKind::kCheckpointStarted, "checkpoint_started"},
    {EventKind::kCheckpointPublished, "checkpoint_published"},
    {EventKind::kCheckpointFailed, "checkpoint_failed"},
    {EventKind::kValidation, "validation"},
    {EventKind::kWarning, "warning"},
    {EventKind::kStopRequested, "stop_requested"},
    {EventKind::kRankLost, "rank_lost"},
    {EventKind::kHangSuspected, "hang_suspected"},
    {EventKind::kAttemptEnded, "attempt_ended"},
    {EventKind::kDecision, "decision"},
    {EventKind::kRunEnded, "run_ended"},
}};

constexpr std::array kHeadFields = {"v", "time", "mono_s", "attempt", "rank", "kind"};

Status check_version(int version, std::string_view what) {
  if (version == kVersion) return {};
  return fail(ExitCode::kUsage, fmt::format("{} has version {}, but this ptrain reads version {}",
                                            what, version, kVersion));
}

}  // namespace

std::string_view to_string(EventKind kind) {
  for (const auto& [value, name] : kKinds)
    if (value == kind) return name;
  return "";
}

Result<EventKind> event_kind_from(std::string_view text) {
  for (const auto& [value, name] : kKinds)
    if (name == text) return value;
  return fail(ExitCode::kUsage, fmt::format("'{}' is not a kind of event", text));
}

nlohmann::json to_json(const Event& event) {
  nlohmann::json json = with_finite_numbers(event.fields);
  json["v"] = kVersion;
  json["time"] = event.time;
  json["mono_s"] = number(event.mono_s);
  json["attempt"] = event.attempt;
  json["rank"] = event.rank;
  json["kind"] = to_string(event.kind);
  return json;
}

Result<Event> event_from_json(const nlohmann::json& json) {
  Event event;
  int version = 0;
  std::string kind;
  FieldReader reader(json, "event");
  reader.get("v", version).get("time", event.time).get("mono_s", event.mono_s);
  reader.get("attempt", event.attempt).get("rank", event.rank).get("kind", kind);
  PTRAIN_CHECK(reader.status());
  PTRAIN_CHECK(check_version(version, "event"));
  PTRAIN_TRY(event.kind, event_kind_from(kind));
  event.fields = json;
  for (const char* name : kHeadFields) event.fields.erase(name);
  return event;
}

nlohmann::json to_json(const Verdict& verdict) {
  return {{"v", kVersion},
          {"code", static_cast<int>(verdict.code)},
          {"reason", verdict.reason},
          {"next", verdict.next},
          {"attempt", verdict.attempt},
          {"rank", verdict.rank},
          {"signal", verdict.signal},
          {"step", verdict.step},
          {"nodes", verdict.nodes},
          {"held_s", number(verdict.held_s)},
          {"trained_s", number(verdict.trained_s)}};
}

namespace {

// What verdicts did not have at first.
void read_added(const nlohmann::json& json, FieldReader& reader, Verdict& verdict) {
  if (!json.is_object() || !json.contains("nodes")) return;
  reader.get("held_s", verdict.held_s).get("trained_s", verdict.trained_s);
  for (const auto& node : reader.array("nodes")) {
    if (!node.is_string()) return reader.refuse("verdict: a node is not a text");
    verdict.nodes.push_back(node.get<std::string>());
  }
}

}  // namespace

Result<Verdict> verdict_from_json(const nlohmann::json& json) {
  Verdict verdict;
  int version = 0, code = 0;
  FieldReader reader(json, "verdict");
  reader.get("v", version).get("code", code).get("reason", verdict.reason);
  reader.get("next", verdict.next).get("attempt", verdict.attempt).get("rank", verdict.rank);
  reader.get("signal", verdict.signal).get("step", verdict.step);
  read_added(json, reader, verdict);
  PTRAIN_CHECK(reader.status());
  PTRAIN_CHECK(check_version(version, "verdict"));
  PTRAIN_TRY(verdict.code, exit_code_from(code));
  return verdict;
}

}  // namespace ptrain::run
