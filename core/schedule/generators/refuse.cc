#include "core/schedule/generators/refuse.h"

#include <fmt/format.h>

namespace ptrain::schedule {

tl::unexpected<Error> refuse(std::string_view name, std::string_view reason,
                             std::string_view nearest) {
  return fail(ExitCode::kUsage, fmt::format("schedule {} {}", name, reason),
              fmt::format("nearest that works: {}", nearest));
}

}  // namespace ptrain::schedule
