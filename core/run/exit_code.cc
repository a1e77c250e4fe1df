#include <fmt/format.h>

#include "core/run/event.h"

namespace ptrain::run {

Result<ExitCode> exit_code_from(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kDone:
    case ExitCode::kBug:
    case ExitCode::kUsage:
    case ExitCode::kEnvironment:
    case ExitCode::kNothingFits:
    case ExitCode::kRankError:
    case ExitCode::kRankSignal:
    case ExitCode::kOutOfMemory:
    case ExitCode::kHang:
    case ExitCode::kNodeLost:
    case ExitCode::kUnusable:
    case ExitCode::kNonFinite:
    case ExitCode::kStopped:
    case ExitCode::kPreempted:
    case ExitCode::kNoProgress:
      return static_cast<ExitCode>(code);
  }
  if (code > 128 && code <= 192) return static_cast<ExitCode>(code);  // ptrain ended by a signal
  return fail(ExitCode::kUsage, fmt::format("{} is not an exit code of ptrain", code));
}

}  // namespace ptrain::run
