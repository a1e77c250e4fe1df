#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::run {

enum class Mode { kTrain, kProbe, kData, kExport, kParity };

// How mode export writes weights.
struct ExportSettings {
  std::string checkpoint;  // folder; empty: the newest of the run directory
  std::string dtype;       // fp32, bf16, fp16
  std::int64_t shard_bytes = 0;
  bool operator==(const ExportSettings&) const = default;
};

// The environment variable with the control token, so that no process list shows it.
inline constexpr const char* kControlToken = "PTRAIN_CONTROL_TOKEN";

// What `ptrain worker` hands to ptrain_engine_main as JSON.
struct Request {
  Mode mode = Mode::kTrain;
  std::string run_directory;
  int attempt = 0;
  std::string shape;         // of the plan; empty: the first that is not finished
  std::string control_host;  // empty: no supervisor
  int control_port = 0;
  std::string output;  // probe, data: file to write; export: folder
  ExportSettings exporting;
  bool operator==(const Request&) const = default;
};

std::string to_json_text(const Request& request);
Result<Request> request_from_json_text(std::string_view text);

}  // namespace ptrain::run
