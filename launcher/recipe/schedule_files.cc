#include "launcher/recipe/schedule_files.h"

#include <filesystem>

#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "launcher/base/file.h"

namespace ptrain::recipe {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Result<std::string> read_order(const std::string& name, const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  PTRAIN_TRY(std::string text, read_file(path, kMostBytes));
  PTRAIN_TRY(const schedule::Schedule schedule, schedule::from_csv(text, path));
  const Status status = schedule::check(schedule);
  if (!status)
    return fail(ExitCode::kUsage, path + ": " + status.error().message, status.error().hint);
  return text;
}

}  // namespace

Result<std::map<std::string, std::string>> read_schedule_files(const Recipe& recipe,
                                                               const std::string& folder) {
  std::map<std::string, std::string> texts;
  const auto read = [&](const Parallel& parallel) -> Status {
    if (!is_schedule_file(parallel.schedule) || texts.contains(parallel.schedule)) return {};
    PTRAIN_TRY(texts[parallel.schedule], read_order(parallel.schedule, folder));
    return {};
  };
  PTRAIN_CHECK(read(recipe.parallel));
  for (const Shape& shape : recipe.shapes) {
    if (shape.parallel) PTRAIN_CHECK(read(*shape.parallel));
  }
  return texts;
}

}  // namespace ptrain::recipe
