#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/run/json_fields.h"
#include "core/run/plan.h"

namespace ptrain::run {

namespace {

Status failed(const std::string& path, std::string_view action) {
  return fail(ExitCode::kEnvironment,
              fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)),
              "check that the folder exists, is writable and has space left");
}

Status write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) return failed(path, "write");
  return {};
}

}  // namespace

Result<Plan> read_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return fail(ExitCode::kUsage, fmt::format("cannot read the plan {}", path),
                "give a plan.json that `ptrain plan` or a run wrote");
  auto plan = parse_json(text.str(), "the plan " + path).and_then(plan_from_json);
  if (!plan) plan.error().place.file = path;
  return plan;
}

Status write_plan(const std::string& path, const Plan& plan) {
  const std::string temporary = path + ".tmp";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed(temporary, "create");
  const std::string text = to_json(plan).dump(
      1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const Status written = write_all(file, text, temporary);
  ::close(file);
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed(path, "replace");
  return {};
}

}  // namespace ptrain::run
