#include "launcher/base/plan_file.h"

#include <cstddef>

#include "launcher/base/file.h"

namespace ptrain {

Result<run::Plan> read_plan(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  auto plan = read_file(path, kMostBytes).and_then(run::plan_from_text);
  if (plan) return plan;
  plan.error().place.file = path;
  plan.error().hint = "give the plan.json of a run of this build";
  return plan;
}

Status write_plan(const std::string& path, const run::Plan& plan) {
  return publish_file(path, run::to_text(plan));
}

}  // namespace ptrain
