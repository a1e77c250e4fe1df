#include "core/run/request.h"

#include <fmt/format.h>

#include "core/run/json_fields.h"

namespace ptrain::run {

namespace {

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kTrain:
      return "train";
    case Mode::kProbe:
      return "probe";
    case Mode::kData:
      return "data";
    case Mode::kExport:
      return "export";
    case Mode::kParity:
      return "parity";
  }
  return "";
}

Result<Mode> mode_from(std::string_view text) {
  for (const Mode mode : {Mode::kTrain, Mode::kProbe, Mode::kData, Mode::kExport, Mode::kParity})
    if (to_string(mode) == text) return mode;
  return fail(ExitCode::kUsage, fmt::format("request: '{}' is not a mode", text),
              "allowed: train, probe, data, export, parity");
}

}  // namespace

std::string to_json_text(const Request& request) {
  nlohmann::json json{{"mode", to_string(request.mode)},
                      {"run_directory", request.run_directory},
                      {"attempt", request.attempt},
                      {"shape", request.shape},
                      {"control_host", request.control_host},
                      {"control_port", request.control_port},
                      {"output", request.output}};
  if (request.mode == Mode::kExport)
    json["export"] = {{"checkpoint", request.exporting.checkpoint},
                      {"dtype", request.exporting.dtype},
                      {"shard_bytes", request.exporting.shard_bytes}};
  return dump_line(json);
}

Result<Request> request_from_json_text(std::string_view text) {
  PTRAIN_TRY(const nlohmann::json json, parse_json(text, "request"));
  Request request;
  std::string mode;
  FieldReader reader(json, "request");
  reader.get("mode", mode).get("run_directory", request.run_directory);
  reader.get("attempt", request.attempt).get("shape", request.shape);
  reader.get("control_host", request.control_host).get("control_port", request.control_port);
  reader.get("output", request.output);
  PTRAIN_CHECK(reader.status());
  PTRAIN_TRY(request.mode, mode_from(mode));
  if (request.mode != Mode::kExport) return request;
  FieldReader settings(reader.object("export"), "request: export");
  settings.get("checkpoint", request.exporting.checkpoint).get("dtype", request.exporting.dtype);
  settings.get("shard_bytes", request.exporting.shard_bytes);
  PTRAIN_CHECK(reader.status());
  PTRAIN_CHECK(settings.status());
  return request;
}

}  // namespace ptrain::run
