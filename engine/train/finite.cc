#include "engine/train/finite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "engine/base/all_finite.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/agree.h"

namespace ptrain::train {

void check_finite(const RankState& state, const std::string& source) {
  checkpoint::together(state.world, [&] {
    std::set<std::string> bad;
    for (const auto& group : state.groups)
      for (const auto& run : group.runs()) {
        const auto& name =
            state.architecture.parameters[static_cast<std::size_t>(run.parameter)].name;
        if (!all_finite(group.master(run))) bad.insert(name);
      }
    if (bad.empty()) return;
    throw EngineError(
        ExitCode::kUnusable,
        fmt::format("{}: not finite numbers (NaN or infinity) in {}", source, fmt::join(bad, ", ")),
        "it was damaged or had diverged when it was saved: take an earlier one");
  });
}

}  // namespace ptrain::train
