#include "launcher/preflight/node_report.h"

#include <nlohmann/json.hpp>

#include "core/run/json_fields.h"

namespace ptrain::preflight {

std::string to_line(const NodeReport& report) {
  return run::dump_line({{"node", report.node},
                         {"binary", report.binary},
                         {"engine", report.engine},
                         {"plan", report.plan},
                         {"time_s", run::number(report.time_s)},
                         {"knows_directory", report.knows_directory},
                         {"sees_mark", report.sees_mark},
                         {"write_error", report.write_error},
                         {"disk_free", report.disk_free},
                         {"inodes_free", report.inodes_free},
                         {"temporary_error", report.temporary_error},
                         {"memory_available", report.memory_available},
                         {"open_files", report.open_files},
                         {"num_gpus", report.num_gpus},
                         {"speed", run::number(report.speed)},
                         {"next_error", report.next_error},
                         {"next_bytes_per_s", run::number(report.next_bytes_per_s)},
                         {"gpu_error", report.gpu_error},
                         {"gpu_tool_error", report.gpu_tool_error}});
}

Result<NodeReport> report_from_line(std::string_view line) {
  PTRAIN_TRY(const auto json, run::parse_json(line, "the report of a node", 4));
  NodeReport report;
  run::FieldReader reader(json, "report of a node");
  reader.get("node", report.node).get("binary", report.binary).get("engine", report.engine);
  reader.get("plan", report.plan).get("time_s", report.time_s);
  reader.get("knows_directory", report.knows_directory).get("sees_mark", report.sees_mark);
  reader.get("write_error", report.write_error).get("disk_free", report.disk_free);
  reader.get("inodes_free", report.inodes_free).get("temporary_error", report.temporary_error);
  reader.get("memory_available", report.memory_available).get("open_files", report.open_files);
  reader.get("num_gpus", report.num_gpus).get("speed", report.speed);
  reader.get("next_error", report.next_error).get("next_bytes_per_s", report.next_bytes_per_s);
  reader.get("gpu_error", report.gpu_error).get("gpu_tool_error", report.gpu_tool_error);
  PTRAIN_CHECK(reader.status());
  return report;
}

}  // namespace ptrain::preflight
