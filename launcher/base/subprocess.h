#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace ptrain::base {

// What to run: arguments are a list, never a shell string; arguments[0] is an absolute path.
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // added to, or replacing, our own
};

// As a person could type it: environment first, quoted where needed. Values of `secret` are hidden.
std::string to_text(const Command& command, std::string_view secret = "");

// How a process ended: an exit code, or the signal that killed it.
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool operator==(const ExitStatus&) const = default;
};

// A child in a process group of its own: stdin is /dev/null, stdout and stderr come by one pipe.
// It is started by posix_spawn: the parent may have threads. Destroying it kills the group.
class Subprocess {
 public:
  static Result<Subprocess> start(const Command& command);
  ~Subprocess();
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&&) = delete;

  int pid() const { return pid_; }
  int output_file() const { return output_; }  // non-blocking; for poll()
  int end_file() const { return end_; }        // can be read once it has ended; -1: old kernel
  std::string read_output();                   // what has arrived
  std::optional<ExitStatus> poll();            // never waits
  void signal_group(int signal) const;         // nothing once it has ended

 private:
  Subprocess(int pid, int output);

  int pid_ = -1;
  int output_ = -1;
  int end_ = -1;
  std::optional<ExitStatus> status_;
};

// Runs a short command to its end and returns all that it wrote. One that takes longer than the
// limit is killed, which is an error (kEnvironment); 0: it may take for ever.
struct Finished {
  ExitStatus status;
  std::string output;
};
Result<Finished> run_to_end(const Command& command,
                            std::chrono::seconds limit = std::chrono::seconds(0));

}  // namespace ptrain::base
