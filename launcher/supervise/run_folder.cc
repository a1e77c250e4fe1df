#include "launcher/supervise/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "launcher/base/file.h"
#include "launcher/base/subprocess.h"

namespace ptrain::supervise {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> cannot_create(const std::string& path, const std::string& why) {
  return fail(ExitCode::kEnvironment, fmt::format("cannot create {}: {}", path, why),
              "run where you may write, or give --directory");
}

tl::unexpected<Error> exists_already(const std::string& path) {
  const bool is_run = is_regular_file(run::Directory{path}.plan());
  return fail(ExitCode::kUsage, fmt::format("{} exists already", path),
              "choose another --directory" +
                  (is_run ? ", or continue it with " + resume_command({path}) : ""));
}

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno == EEXIST) return exists_already(path);
  return cannot_create(path, std::strerror(errno));
}

// The number behind `prefix` in `name`, when nothing follows it and ptrain may have written it.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view prefix,
                                      std::int64_t most) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t value = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > most) return std::nullopt;
  return value;
}

std::vector<std::int64_t> numbered_folders(const std::string& path, std::string_view prefix,
                                           std::int64_t most) {
  std::vector<std::int64_t> numbers;
  std::error_code ignored;  // a folder that is not there holds none
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (const auto number = number_in(entry.path().filename().string(), prefix, most))
      numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

int open_lock(const run::Directory& directory, int flags) {
  return ::open(directory.lock().c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

bool is_gone(const std::string& path, struct stat& status) {
  return ::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

FolderWatch::FolderWatch(const run::Directory& directory) : directory_(directory) {
  struct stat status {};
  ::stat(directory.root.c_str(), &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

// What else a file system may say, such as that it does not answer, is taken for a passing fault.
// plan.json is replaced by rename only, so a folder without it is being removed.
bool FolderWatch::is_there() const {
  struct stat status {};
  status.st_dev = device_;
  status.st_ino = inode_;
  if (is_gone(directory_.root, status)) return false;
  if (status.st_dev != device_ || status.st_ino != inode_) return false;
  return !is_gone(directory_.plan(), status);
}

Result<run::Directory> create_run(const std::string& path) {
  const std::string root = absolute_path(path);
  const std::string parent = fs::path(root).parent_path().string();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return cannot_create(parent, error.message());
  PTRAIN_CHECK(make_folder(root));
  const run::Directory directory{root};
  for (const auto& folder : {root + "/logs", directory.trace(), directory.checkpoints()})
    if (auto made = make_folder(folder); !made) {
      fs::remove_all(root, error);
      return tl::unexpected(std::move(made).error());
    }
  return directory;
}

Result<run::Directory> create_next_run(const std::string& path) {
  constexpr int kMostTries = 1000;
  auto created = create_run(path);
  for (int i = 2; i <= kMostTries && !created && created.error().code == ExitCode::kUsage; ++i)
    created = create_run(fmt::format("{}-{}", path, i));
  return created;
}

Status check_new_run(const std::string& path) {
  const std::string root = absolute_path(path);
  struct stat status {};
  if (::lstat(root.c_str(), &status) == 0) return exists_already(root);
  if (errno != ENOENT && errno != ENOTDIR) return cannot_create(root, std::strerror(errno));
  return check_next_run(root);
}

Status check_next_run(const std::string& path) {
  std::error_code error;
  fs::path above = fs::path(absolute_path(path)).parent_path();
  while (!fs::exists(above, error) && !error && above.has_relative_path())
    above = above.parent_path();
  if (error) return cannot_create(path, error.message());
  if (above.empty()) return cannot_create(path, "the folder that this was called in is gone");
  if (!fs::is_directory(above, error)) return cannot_create(path, above.string() + " is no folder");
  if (::access(above.c_str(), W_OK | X_OK) == 0) return {};
  return cannot_create(path, fmt::format("{}: {}", above.string(), std::strerror(errno)));
}

Status create_attempt(const run::Directory& directory, int attempt) {
  auto made = make_folder(directory.attempt_folder(attempt));
  if (!made)
    made.error().hint = made.error().code == ExitCode::kUsage
                            ? "remove or rename that folder"
                            : "see that the run directory can be written";
  return made;
}

Result<run::Directory> open_run(const std::string& path) {
  const run::Directory directory{absolute_path(path)};
  std::error_code error;
  if (fs::is_regular_file(directory.plan(), error)) return directory;
  if (error == std::errc::permission_denied)
    return fail(ExitCode::kUsage, fmt::format("cannot look into {}: {}", path, error.message()),
                "a run's folder is its owner's alone");
  return fail(ExitCode::kUsage, fmt::format("{} is not a run directory: it has no plan.json", path),
              "`ptrain list` shows the runs");
}

std::string resume_command(const run::Directory& directory) {
  return fmt::format("`{}`", base::to_text({{"ptrain", "resume", directory.root}, {}}));
}

int next_attempt(const run::Directory& directory) {
  constexpr std::int64_t kMostAttempts = 1'000'000;
  const auto attempts = numbered_folders(directory.root + "/logs", "attempt-", kMostAttempts);
  return attempts.empty() ? 1 : static_cast<int>(attempts.back()) + 1;
}

std::vector<std::int64_t> checkpoint_steps(const run::Directory& directory) {
  constexpr std::int64_t kMostSteps = 1'000'000'000'000'000;
  return numbered_folders(directory.checkpoints(), "step-", kMostSteps);
}

std::int64_t newest_step(const run::Directory& directory) {
  const auto steps = checkpoint_steps(directory);
  return steps.empty() ? -1 : steps.back();
}

Result<RunLock> RunLock::take(const run::Directory& directory) {
  const int file = open_lock(directory, O_RDWR | O_CREAT);
  if (file < 0)
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot open {}: {}", directory.lock(), std::strerror(errno)),
                "work on a run as the user who started it, where its disk can be written");
  RunLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return fail(ExitCode::kUsage,
                fmt::format("{} is in use by another ptrain (pid {})", directory.root,
                            supervisor_of(directory)),
                "wait for it, or end it with `ptrain stop`");
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(file, 0) != 0 ||
      ::write(file, pid.data(), pid.size()) != static_cast<ssize_t>(pid.size()))
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot write {}: {}", directory.lock(), std::strerror(errno)),
                "check that its disk has space left");
  return lock;
}

RunLock::~RunLock() {
  if (file_ >= 0) ::close(file_);
}

RunLock::RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

int supervisor_of(const run::Directory& directory) {
  const int file = open_lock(directory, O_RDONLY);
  if (file < 0) return 0;
  char text[16] = {};
  int pid = 0;
  if (::flock(file, LOCK_SH | LOCK_NB) != 0 && ::read(file, text, sizeof text - 1) > 0)
    std::from_chars(text, text + std::strlen(text), pid);
  ::close(file);
  return pid;
}

}  // namespace ptrain::supervise
