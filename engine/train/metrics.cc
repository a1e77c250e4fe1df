#include "engine/train/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"

namespace ptrain::train {
namespace {

[[noreturn]] void fail_on(const std::string& path) {
  throw EngineError(ExitCode::kEnvironment,
                    fmt::format("cannot write {}: {}", path, std::strerror(errno)),
                    "the run directory must be writable and have room");
}

// Opening a pipe would wait for its other end.
void check_file(const std::string& path) {
  std::error_code ignored;  // what is wrong then, opening it says
  if (!std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored))
    return;
  throw EngineError(ExitCode::kEnvironment, path + " is not a regular file",
                    "move it away: metrics are written to a file of this name");
}

std::optional<std::int64_t> step_of(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer())
    return std::nullopt;
  return json["step"].get<std::int64_t>();
}

// Bytes of the file up to its last whole line of a step at or before `step`, and before any later
// step. Lines between, which cannot be read, take none of the others with them.
std::int64_t kept_bytes(const std::string& path, std::int64_t step) {
  std::ifstream file(path);
  std::int64_t kept = 0, read = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read += static_cast<std::int64_t>(line.size()) + 1;
    const auto found = step_of(line);
    if (found && *found > step) break;
    if (found) kept = read;
  }
  return kept;
}

void add(const execute::RouterReport& routers, nlohmann::ordered_json& json) {
  json["balance_loss"] = routers.balance_loss;
  json["z_loss"] = routers.z_loss;
  json["router_entropy"] = routers.entropy;
  json["largest_load"] = routers.largest_load;
  json["idle_experts"] = routers.idle;
  json["dropped"] = routers.dropped;
}

}  // namespace

Metrics::Metrics(std::string path, std::int64_t step, int attempt)
    : path_(std::move(path)), attempt_(attempt) {
  check_file(path_);
  fault::point("start.metrics.cut");
  const std::int64_t kept = kept_bytes(path_, step);
  fault::point("start.metrics.open");
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0 || ::ftruncate(file_, kept) != 0) fail_on(path_);
  size_ = kept;
}

Metrics::~Metrics() {
  if (file_ < 0) return;
  try {
    append();  // the last chance of lines that had no room
  } catch (const EngineError&) {
  }
  ::close(file_);
}

// False: there is no room, and nothing was written.
bool Metrics::append() {
  ssize_t written = 0;
  do written = ::write(file_, unwritten_.data(), unwritten_.size());
  while (written < 0 && errno == EINTR);
  if (written == std::ssize(unwritten_)) {
    size_ += written;
    unwritten_.clear();
    return true;
  }
  // Where only a part was taken, that was all the room.
  const bool full = written >= 0 || errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  if (!full || ::ftruncate(file_, size_) != 0) fail_on(path_);
  return false;
}

std::optional<std::string> Metrics::write(const run::StepDone& step,
                                          const std::optional<execute::RouterReport>& routers) {
  nlohmann::ordered_json json;
  json["attempt"] = attempt_;
  json["step"] = step.step;
  json["shape"] = step.shape;
  json["loss"] = step.loss;
  json["grad_norm"] = step.grad_norm;
  json["learning_rate"] = step.learning_rate;
  json["tokens"] = step.tokens;
  json["tokens_total"] = step.tokens_total;
  json["step_s"] = step.step_s;
  json["tokens_per_s"] = step.tokens_per_s;
  json["mfu"] = step.mfu;
  json["bytes_peak"] = step.bytes_peak;
  if (routers) add(*routers, json);
  unwritten_ += json.dump() + "\n";
  fault::point("train.metrics.write");
  if (append() || std::exchange(told_, true)) return std::nullopt;
  return fmt::format("there is no room for {}: its lines are kept until there is some", path_);
}

}  // namespace ptrain::train
