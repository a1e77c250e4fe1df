#include "cli/rank.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace ptrain::cli {

Result<int> rank_from_environment() {
  for (const char* name : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text(value);
    int rank = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && end == text.data() + text.size() && rank >= 0) return rank;
  }
  return fail(ExitCode::kUsage, "this process has no rank: no launcher has started it",
              "ranks are started by `ptrain run` and `ptrain resume`");
}

}  // namespace ptrain::cli
