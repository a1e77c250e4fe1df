#include "cli/local_copy.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "core/run/json_fields.h"
#include "launcher/base/file.h"
#include "launcher/base/subprocess.h"
#include "launcher/preflight/node_check.h"
#include "launcher/start/choose.h"
#include "launcher/start/local_copy.h"

namespace ptrain::cli {

namespace {

constexpr std::size_t kMostList = std::size_t{1} << 20;
constexpr std::chrono::seconds kLimit{300};  // gigabytes, from a server that all nodes ask at once

// What every node has of its system.
bool is_of_system(std::string_view path) {
  const auto in = [path](std::string_view folder) { return path.starts_with(folder); };
  return !in("/") || in("/lib/") || in("/lib64/") || in("/usr/lib/") || in("/usr/lib64/");
}

int add_library(dl_phdr_info* info, std::size_t, void* paths) {
  if (!is_of_system(info->dlpi_name))
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
  return 0;
}

// The engine and all that it loads. In a process of its own: torch stays loaded.
Status print_libraries(const std::string& engine) {
  if (::dlopen(engine.c_str(), RTLD_LAZY) == nullptr)
    return fail(ExitCode::kEnvironment, fmt::format("cannot open the engine: {}", ::dlerror()));
  std::vector<std::string> paths;
  ::dl_iterate_phdr(add_library, &paths);
  for (const auto& path : paths) print_line(path);
  return {};
}

Result<std::vector<std::string>> libraries_of(const std::string& ptrain,
                                              const std::string& engine) {
  PTRAIN_TRY(const base::Finished done,
             base::run_to_end({{ptrain, "local-copy", "--engine", engine}, {}}, kLimit));
  if (done.status != base::ExitStatus{}) return fail(ExitCode::kEnvironment, done.output);
  std::vector<std::string> paths{ptrain, engine};
  std::istringstream lines(done.output);  // libraries that are opened may write there too
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('/') && line != engine) paths.push_back(line);
  return paths;
}

// One line of what a node has done.
std::string answer_of(const std::string& node, const Result<std::string>& copied) {
  return run::dump_line({{"node", node},
                         {"folder", copied ? *copied : ""},
                         {"error", copied ? "" : copied.error().message}});
}

// The folder that all nodes have made.
Result<std::string> folder_in(const std::string& output, const std::vector<std::string>& nodes) {
  std::string folder;
  std::vector<std::string> missing = nodes;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto node = json.value("node", "");
    if (const auto error = json.value("error", ""); !error.empty())
      return fail(ExitCode::kEnvironment, fmt::format("{}: {}", node, error));
    std::erase(missing, node);
    folder = json.value("folder", "");
  }
  if (missing.empty()) return folder;
  return fail(ExitCode::kEnvironment, fmt::format("{} has made no copy", missing.front()));
}

std::string library_path(const std::string& folder) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  if (before == nullptr || *before == '\0') return "LD_LIBRARY_PATH=" + folder;
  return fmt::format("LD_LIBRARY_PATH={}:{}", folder, before);
}

}  // namespace

Result<LocalWorker> copy_to_nodes(const run::Directory& directory, const run::Plan& plan,
                                  const std::vector<std::string>& nodes) {
  PTRAIN_TRY(const std::string ptrain, own_path());
  PTRAIN_TRY(const std::string engine, find_engine_of(plan));
  PTRAIN_TRY(const auto paths, libraries_of(ptrain, engine));
  PTRAIN_TRY(const auto list, start::list_copies(paths));
  const std::string file = directory.root + "/local-copy.json";
  PTRAIN_CHECK(publish_file(file, start::to_text(list)));
  base::Command step = start::on_each_node(nodes);
  step.arguments.insert(step.arguments.end(), {ptrain, "local-copy", "--list", file, "--to",
                                               plan.recipe.cluster.local_copy});
  PTRAIN_TRY(const base::Finished done, base::run_to_end(step, kLimit));
  PTRAIN_TRY(const std::string folder, folder_in(done.output, nodes));
  return LocalWorker{folder + "/ptrain", {"/usr/bin/env", library_path(folder)}};
}

Result<ExitCode> cmd_local_copy(const LocalCopyArguments& arguments) {
  if (arguments.list.empty()) {
    PTRAIN_CHECK(print_libraries(arguments.engine));
    return ExitCode::kDone;
  }
  PTRAIN_TRY(const std::string text, read_file(arguments.list, kMostList));
  PTRAIN_TRY(const auto list, start::copy_list_from_text(text));
  const auto copied = start::copy_here(list, arguments.to);
  print(answer_of(preflight::node_name(), copied));
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
