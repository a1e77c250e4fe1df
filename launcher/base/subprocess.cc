#include "launcher/base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace ptrain::base {

namespace {

// Of waiting for a process that was killed: a second.
constexpr int kTurns = 1000;
constexpr useconds_t kTurnUs = 1000;

std::vector<std::string> merged_environment(const Command& command) {
  std::vector<std::string> result;
  for (const auto& [name, value] : command.environment) result.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('='));
    const bool replaced = std::ranges::any_of(command.environment,
                                              [&](const auto& pair) { return pair.first == name; });
    if (!replaced) result.emplace_back(text);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn of `command` with stdout and stderr going to `output`; 0 or the error number.
int spawn(const Command& command, int output, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;  // what we block, catch or ignore is our own affair
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  auto arguments = command.arguments;
  auto environment = merged_environment(command);
  const int error = posix_spawn(&pid, arguments[0].c_str(), &files, &attributes,
                                pointers_to(arguments).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

std::string quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string to_text(const Command& command, std::string_view secret) {
  std::string text;
  for (const auto& [name, value] : command.environment)
    text += name + "=" + (name == secret ? "..." : quoted(value)) + " ";
  for (const auto& argument : command.arguments) text += quoted(argument) + " ";
  text.pop_back();
  return text;
}

Result<Subprocess> Subprocess::start(const Command& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ExitCode::kEnvironment, fmt::format("cannot make a pipe: {}", strerror(errno)),
                "raise the limit of open files (ulimit -n)");
  pid_t pid = -1;
  const int error = spawn(command, ends[1], pid);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot start {}: {}", command.arguments[0], strerror(error)));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Subprocess(pid, ends[0]);
}

Subprocess::Subprocess(int pid, int output)
    : pid_(pid), output_(output), end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Subprocess::~Subprocess() {
  if (pid_ < 0) return;
  if (!poll()) {
    signal_group(SIGKILL);
    // One that the kernel keeps in a device, as nvidia-smi with a lost GPU, does not die of it.
    for (int turn = 0; turn < kTurns && !poll(); ++turn) ::usleep(kTurnUs);
  }
  ::close(output_);
  if (end_ >= 0) ::close(end_);
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      end_(std::exchange(other.end_, -1)),
      status_(other.status_) {}

std::string Subprocess::read_output() {
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::read(output_, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(size));
  return text;
}

std::optional<ExitStatus> Subprocess::poll() {
  int status = 0;
  if (status_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return status_;
  status_ =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  return status_;
}

void Subprocess::signal_group(int signal) const {
  if (!status_) ::kill(-pid_, signal);  // not reaped yet, so the number is still its own
}

Result<Finished> run_to_end(const Command& command, std::chrono::seconds limit) {
  using Clock = std::chrono::steady_clock;
  PTRAIN_TRY(Subprocess process, Subprocess::start(command));
  const auto start = Clock::now();
  Finished result;
  for (;;) {
    const auto status = process.poll();
    result.output += process.read_output();
    if (status) {
      result.status = *status;
      return result;
    }
    if (limit.count() > 0 && Clock::now() - start > limit)
      return fail(ExitCode::kEnvironment,
                  fmt::format("no answer after {} s: {}", limit.count(), to_text(command)));
    pollfd entry{process.output_file(), POLLIN, 0};
    ::poll(&entry, 1, 20);
    if ((entry.revents & POLLHUP) != 0) ::usleep(1000);  // closed, but not ended yet
  }
}

}  // namespace ptrain::base
