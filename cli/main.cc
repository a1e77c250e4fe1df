#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cli/args.h"
#include "cli/output.h"

namespace {

// A closed standard file would hand its number to the next file that is opened, and what is meant
// for a person would be written into that. Writing to a stdout that was closed stays an error.
void fill_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(file, F_GETFD) < 0)
      (void)::open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

// A file that grew beyond a limit (ulimit -f) is an error of its write, which names it.
void take_limits_as_errors() { ::signal(SIGXFSZ, SIG_IGN); }

// stdout is data: if it did not arrive, the command has failed.
int with_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  using namespace ptrain;
  const int error = cli::report(
      {ExitCode::kEnvironment, "cannot write to stdout", "it is closed, or its disk is full", {}});
  return code == 0 ? error : code;
}

int run_command(int argc, char** argv) {
  using namespace ptrain;
  const cli::Parsed parsed = cli::parse(argc, argv);
  if (!parsed.command) {
    if (parsed.code == 0)
      cli::print(parsed.text);
    else
      cli::say(parsed.text);
    return parsed.code;
  }
  const Result<ExitCode> code = parsed.command();
  return code ? static_cast<int>(*code) : cli::report(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_files();
  take_limits_as_errors();
  try {
    return with_output(run_command(argc, argv));
  } catch (const std::exception& error) {
    return ptrain::cli::report(
        {ptrain::ExitCode::kBug, error.what(), "this is a bug of ptrain; please report it", {}});
  }
}
