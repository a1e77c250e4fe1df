#include "launcher/recipe/schedule_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "launcher/base/file.h"

namespace ptrain::recipe {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Result<std::string> read_order(const std::string& path) {
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
  const auto read = [&](const Parallel& parallel, const std::string& section) -> Status {
    const std::string& name = parallel.schedule;
    if (!is_schedule_file(name) || texts.contains(name)) return {};
    auto text = read_order((std::filesystem::path(folder) / name).string());
    if (!text) {
      text.error().message = section + "parallel.schedule: " + text.error().message;
      return tl::unexpected(std::move(text).error());
    }
    texts[name] = std::move(*text);
    return {};
  };
  PTRAIN_CHECK(read(recipe.parallel, ""));
  for (std::size_t i = 0; i < recipe.shapes.size(); ++i) {
    const auto& parallel = recipe.shapes[i].parallel;
    if (parallel) PTRAIN_CHECK(read(*parallel, fmt::format("shapes.{}.", i)));
  }
  return texts;
}

}  // namespace ptrain::recipe
