#include "launcher/base/plan_file.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>

#include "core/run/directory.h"
#include "launcher/base/file.h"

namespace ptrain {

namespace {

Result<run::Plan> read(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  return read_file(path, kMostBytes).and_then(run::plan_from_text);
}

// The newest plan of an attempt that can be read, of the run whose plan this is; empty: none.
std::string plan_of_an_attempt(const std::string& path) {
  const run::Directory directory{std::filesystem::path(path).parent_path().string()};
  std::string newest;
  for (int attempt = 1; is_regular_file(directory.attempt_plan(attempt)); ++attempt)
    if (read(directory.attempt_plan(attempt))) newest = directory.attempt_plan(attempt);
  return newest;
}

}  // namespace

Result<run::Plan> read_plan(const std::string& path) {
  auto plan = read(path);
  if (plan) return plan;
  plan.error().place.file = path;
  const std::string kept = plan_of_an_attempt(path);
  plan.error().hint =
      kept.empty() ? "give the plan.json of a run of this build"
                   : fmt::format("copy {} over it: an attempt of this run ran on that", kept);
  return plan;
}

Status write_plan(const std::string& path, const run::Plan& plan) {
  return publish_file(path, run::to_text(plan));
}

}  // namespace ptrain
