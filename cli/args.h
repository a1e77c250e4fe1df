#pragma once

#include <functional>
#include <string>

#include "cli/commands.h"

namespace ptrain::cli {

// What the command line asks for: run it, or print `text` and end with `code` (help, version,
// error).
struct Parsed {
  std::function<Result<ExitCode>()> command;
  std::string text;
  int code = 0;
};

Parsed parse(int argc, const char* const* argv);

}  // namespace ptrain::cli
