#include "engine/base/engine_error.h"

#include <fmt/format.h>

namespace ptrain {

void throw_bug(const char* file, int line, const char* what) {
  throw EngineError(ExitCode::kBug, fmt::format("{}:{}: this must hold: {}", file, line, what),
                    "this is a bug in ptrain: please report it with the rank's log");
}

}  // namespace ptrain
