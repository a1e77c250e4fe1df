#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cli/commands.h"

namespace ptrain::cli {

using Command = std::function<Result<ExitCode>()>;

// A subcommand whose options write into `arguments`; `chosen` becomes its call when it was given.
template <class Arguments>
CLI::App* add(CLI::App& app, Command& chosen, const char* name, const char* description,
              Result<ExitCode> (*call)(const Arguments&), std::shared_ptr<Arguments> arguments) {
  CLI::App* sub = app.add_subcommand(name, description);
  sub->callback([&chosen, call, arguments] { chosen = [=] { return call(*arguments); }; });
  return sub;
}

// Those with options enough for a file of their own.
void add_schedule(CLI::App& app, Command& chosen);

}  // namespace ptrain::cli
