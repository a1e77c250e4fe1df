#include "core/run/control.h"

#include <fmt/format.h>

#include "core/run/json_fields.h"

namespace ptrain::run {

namespace {

using nlohmann::json;

json fields_of(const Hello& m) {
  return {{"type", "hello"}, {"token", m.token}, {"attempt", m.attempt}, {"rank", m.rank},
          {"pid", m.pid},    {"host", m.host},   {"build", m.build},     {"cpus", m.cpus}};
}

json fields_of(const Heartbeat& m) {
  return {{"type", "heartbeat"},
          {"step", m.step},
          {"phase", m.phase},
          {"collective", m.collective},
          {"waiting", m.waiting},
          {"resident_bytes", m.resident_bytes},
          {"steps_s", number(m.steps_s)},
          {"data_s", number(m.data_s)},
          {"waited_s", number(m.waited_s)},
          {"round_trip_s", number(m.round_trip_s)}};
}

json fields_of(const StepDone& m) {
  return {{"type", "step_done"},
          {"step", m.step},
          {"shape", m.shape},
          {"loss", number(m.loss)},
          {"grad_norm", number(m.grad_norm)},
          {"learning_rate", number(m.learning_rate)},
          {"tokens", m.tokens},
          {"tokens_total", m.tokens_total},
          {"step_s", number(m.step_s)},
          {"tokens_per_s", number(m.tokens_per_s)},
          {"mfu", number(m.mfu)},
          {"bytes_peak", m.bytes_peak}};
}

json fields_of(const EventMessage& m) {
  return {
      {"type", "event"}, {"kind", to_string(m.kind)}, {"fields", with_finite_numbers(m.fields)}};
}

json fields_of(const Goodbye& m) {
  return {{"type", "goodbye"},
          {"code", static_cast<int>(m.code)},
          {"message", m.message},
          {"next_shape", m.next_shape}};
}

json fields_of(const Stop& m) {
  return {{"type", "stop"}, {"checkpoint", m.checkpoint}, {"reason", m.reason}};
}

json fields_of(const ShowStacks&) { return {{"type", "show_stacks"}}; }

Result<ControlMessage> read_hello(FieldReader& reader) {
  Hello m;
  reader.get("token", m.token).get("attempt", m.attempt).get("rank", m.rank).get("pid", m.pid);
  reader.get("host", m.host).get("build", m.build).get("cpus", m.cpus);
  PTRAIN_CHECK(reader.status());
  return m;
}

Result<ControlMessage> read_heartbeat(FieldReader& reader) {
  Heartbeat m;
  reader.get("step", m.step).get("phase", m.phase).get("collective", m.collective);
  reader.get("waiting", m.waiting).get("resident_bytes", m.resident_bytes);
  reader.get("steps_s", m.steps_s).get("data_s", m.data_s).get("waited_s", m.waited_s);
  reader.get("round_trip_s", m.round_trip_s);
  PTRAIN_CHECK(reader.status());
  return m;
}

Result<ControlMessage> read_step_done(FieldReader& reader) {
  StepDone m;
  reader.get("step", m.step).get("shape", m.shape).get("loss", m.loss);
  reader.get("grad_norm", m.grad_norm).get("learning_rate", m.learning_rate);
  reader.get("tokens", m.tokens).get("tokens_total", m.tokens_total).get("step_s", m.step_s);
  reader.get("tokens_per_s", m.tokens_per_s).get("mfu", m.mfu).get("bytes_peak", m.bytes_peak);
  PTRAIN_CHECK(reader.status());
  return m;
}

Result<ControlMessage> read_event(FieldReader& reader) {
  EventMessage m;
  std::string kind;
  m.fields = reader.get("kind", kind).object("fields");
  PTRAIN_CHECK(reader.status());
  PTRAIN_TRY(m.kind, event_kind_from(kind));
  return m;
}

Result<ControlMessage> read_goodbye(FieldReader& reader) {
  Goodbye m;
  int code = 0;
  reader.get("code", code).get("message", m.message).get("next_shape", m.next_shape);
  PTRAIN_CHECK(reader.status());
  PTRAIN_TRY(m.code, exit_code_from(code));
  return m;
}

Result<ControlMessage> read_stop(FieldReader& reader) {
  Stop m;
  reader.get("checkpoint", m.checkpoint).get("reason", m.reason);
  PTRAIN_CHECK(reader.status());
  return m;
}

// The longest text anywhere inside; null where there is none.
json* longest_text(json& value) {
  if (value.is_string()) return &value;
  if (!value.is_structured()) return nullptr;
  json* longest = nullptr;
  for (json& part : value) {
    json* found = longest_text(part);
    if (found == nullptr) continue;
    if (longest == nullptr ||
        found->get_ref<const std::string&>().size() > longest->get_ref<const std::string&>().size())
      longest = found;
  }
  return longest;
}

// Halves it; false where nothing is left to cut.
bool cut(json* text) {
  constexpr std::string_view kMark = " ... (cut)";
  constexpr std::size_t kShortest = 256;
  if (text == nullptr) return false;
  auto& value = text->get_ref<std::string&>();
  if (value.size() < kShortest) return false;
  value.resize((value.size() - (value.ends_with(kMark) ? kMark.size() : 0)) / 2);
  value += kMark;
  return true;
}

}  // namespace

std::string to_line(const ControlMessage& message) {
  json object = std::visit([](const auto& m) { return fields_of(m); }, message);
  std::string line = dump_line(object);
  while (line.size() > kMaxControlLine && cut(longest_text(object))) line = dump_line(object);
  return line;
}

Result<ControlMessage> message_from_line(std::string_view line) {
  if (line.size() > kMaxControlLine)
    return fail(ExitCode::kUsage, "a control message is longer than its limit");
  PTRAIN_TRY(const json object, parse_json(line, "a control message", kMaxControlDepth));
  std::string type;
  FieldReader reader(object, "a control message");
  reader.get("type", type);
  PTRAIN_CHECK(reader.status());
  if (type == "hello") return read_hello(reader);
  if (type == "heartbeat") return read_heartbeat(reader);
  if (type == "step_done") return read_step_done(reader);
  if (type == "event") return read_event(reader);
  if (type == "goodbye") return read_goodbye(reader);
  if (type == "stop") return read_stop(reader);
  if (type == "show_stacks") return ShowStacks{};
  return fail(ExitCode::kUsage, fmt::format("'{}' is not a control message", type));
}

}  // namespace ptrain::run
