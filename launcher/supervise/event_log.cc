#include "launcher/supervise/event_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/run/json_fields.h"
#include "launcher/base/file.h"

namespace ptrain::supervise {

namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 30;
constexpr std::size_t kMostVerdict = std::size_t{1} << 20;

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), millis % 1000);
}

// Whether the file's last line was cut short, as by a loss of power.
bool is_torn(int file, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

// A pipe would keep who reads or writes it waiting.
bool is_regular(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

// All at once or nothing: a part that a full disk has taken is taken back.
bool append(int file, const std::string& new_lines) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  const std::string lines = (is_torn(file, size) ? "\n" : "") + new_lines;
  const ssize_t written = ::write(file, lines.data(), lines.size());
  if (written == std::ssize(lines)) return true;
  if (written >= 0) {
    (void)!::ftruncate(file, size);
    errno = ENOSPC;
  }
  return false;
}

// One write() of whole lines, so that a reader or a kill never sees two lines mixed.
Status append_lines(const std::string& path, const std::string& lines) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
  const bool is_file = file < 0 || is_regular(file);
  const bool good = file >= 0 && is_file && append(file, lines);
  const int error = errno;
  if (file >= 0) ::close(file);
  if (good) return {};
  if (!is_file)
    return fail(ExitCode::kEnvironment, fmt::format("cannot write {}: not a regular file", path),
                "move it away: events are written to a file of this name");
  if (error == ENOENT)  // the file itself would have been created
    return fail(ExitCode::kUnusable,
                fmt::format("cannot write {}: the run directory was removed or moved", path),
                "move it back");
  return fail(ExitCode::kEnvironment,
              fmt::format("cannot write {}: {}", path, std::strerror(error)),
              "check the space left there and who may write; events are kept, and written with the "
              "next one that can be");
}

}  // namespace

Status EventLog::write(run::EventKind kind, int rank, nlohmann::json fields) {
  add(kind, rank, std::move(fields));
  return flush();
}

void EventLog::add(run::EventKind kind, int rank, nlohmann::json fields) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  const run::Event event{kind, utc_now(), since.count(), attempt_, rank, std::move(fields)};
  unwritten_ += run::dump_line(run::to_json(event));
  has_new_ = true;
}

Status EventLog::flush() {
  if (!std::exchange(has_new_, false)) return {};
  PTRAIN_CHECK(append_lines(directory_.events(), unwritten_));
  unwritten_.clear();
  return {};
}

Status EventLog::write(const run::Verdict& verdict) {
  return publish_file(directory_.verdict(), run::dump_line(run::to_json(verdict)));
}

Result<std::vector<run::Event>> read_events(const std::string& path) {
  PTRAIN_TRY(const std::string text, read_file(path, kMostEvents));
  std::vector<run::Event> events;
  int number = 1;
  for (std::size_t start = 0; start < text.size(); ++number) {
    const auto end = text.find('\n', start);
    if (end == std::string::npos) break;
    const auto line = std::string_view(text).substr(start, end - start);
    auto event = run::parse_json(line, "the line").and_then(run::event_from_json);
    if (!event)
      return fail(event.error().code, event.error().message,
                  "remove the line: checkpoints do not need it", {path, number, 1});
    events.push_back(std::move(*event));
    start = end + 1;
  }
  return events;
}

Result<run::Verdict> read_verdict(const std::string& path) {
  auto verdict = read_file(path, kMostVerdict)
                     .and_then([&](const std::string& text) { return run::parse_json(text, path); })
                     .and_then(run::verdict_from_json);
  if (verdict) return verdict;
  verdict.error().place.file = path;
  verdict.error().hint =
      "remove the file: how the run ended stands in events.jsonl too, and `ptrain resume` does not "
      "need it";
  return verdict;
}

}  // namespace ptrain::supervise
