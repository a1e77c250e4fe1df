#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

Result<run::Request> request_of(const ExportArguments& arguments) {
  run::Request request;
  request.mode = run::Mode::kExport;
  request.output = absolute_path(arguments.to);
  request.exporting.dtype = arguments.dtype;
  request.exporting.shard_bytes = static_cast<std::int64_t>(arguments.shard_bytes);
  const std::string from = absolute_path(arguments.from);
  if (is_regular_file(from + "/.metadata")) {
    request.exporting.checkpoint = from;
  } else {
    PTRAIN_TRY(const run::Directory directory, supervise::open_run(from));
    request.run_directory = directory.root;
  }
  return request;
}

}  // namespace

Result<ExitCode> cmd_export(const ExportArguments& arguments) {
  PTRAIN_TRY(const run::Request request, request_of(arguments));
  std::error_code ignored;  // where it cannot be looked at, writing it fails
  if (std::filesystem::exists(std::filesystem::symlink_status(request.output, ignored)))
    return fail(ExitCode::kUsage, fmt::format("{} is there already", request.output),
                "give the name of a new folder");
  PTRAIN_TRY(const int status, run_engine(request));
  const auto code = static_cast<ExitCode>(status);
  if (code == ExitCode::kDone) print_line(request.output);  // else the engine has said why
  return code;
}

}  // namespace ptrain::cli
