#include "engine/base/plan_file.h"

#include <fstream>
#include <sstream>

#include "engine/base/engine_error.h"

namespace ptrain {

run::Plan read_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw EngineError(ExitCode::kEnvironment, "cannot read the plan " + path,
                      "every node must see the run directory");
  auto plan = run::plan_from_text(text.str());
  if (!plan) plan.error().place.file = path;
  return value_or_throw(std::move(plan));
}

}  // namespace ptrain
