#include "launcher/cluster/probe.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/hash.h"
#include "launcher/base/file.h"
#include "launcher/cluster/figures_json.h"

namespace ptrain::cluster {

namespace {

constexpr std::size_t kMostBytes = 64 * 1024;
constexpr int kVersion = 4;

// When the file was written, for people.
std::string measured_at(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return "";
  const auto time = std::chrono::file_clock::to_sys(written);
  return fmt::format(" at {:%Y-%m-%d %H:%M}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(
                         std::chrono::time_point_cast<std::chrono::system_clock::duration>(time))));
}

Result<Figures> read_figures(const std::string& path) {
  PTRAIN_TRY(const std::string text, read_file(path, kMostBytes));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("version", nlohmann::json()) != kVersion)
    return fail(ExitCode::kEnvironment, fmt::format("{} is no probe of this version", path));
  json.erase("version");
  json.erase("num_ranks");
  PTRAIN_TRY(Figures figures, figures_from_json(json));
  figures.source = "measured on this machine" + measured_at(path);
  return figures;
}

// Measures into a file beside the kept one, so that a broken probe leaves nothing that looks good.
Result<Figures> measure(const std::string& path, const ProbeKey& key, const ProbeRunner& runner) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string fresh = path + ".new";
  std::filesystem::remove(fresh, error);
  PTRAIN_CHECK(runner(key.num_ranks, fresh));
  PTRAIN_TRY(Figures figures, read_figures(fresh));
  std::filesystem::rename(fresh, path, error);
  if (error)
    return fail(ExitCode::kEnvironment, fmt::format("cannot write {}: {}", path, error.message()));
  return figures;
}

}  // namespace

std::string probe_path(const std::string& cache_folder, const ProbeKey& key) {
  const auto identity = fmt::format("{}\n{}\n{}", key.processor, key.num_ranks, key.build);
  return fmt::format("{}/probe-{}.json", cache_folder, hash128_hex(identity));
}

Figures probed_figures(const ProbeInput& input, std::vector<std::string>& notes) {
  const auto& [cache_folder, key, runner, again] = input;
  if (cache_folder.empty()) {
    notes.push_back("no probe: neither XDG_CACHE_HOME nor HOME is set");
    return default_figures();
  }
  const std::string path = probe_path(cache_folder, key);
  if (!again) {
    if (const auto kept = read_figures(path)) return *kept;
  }
  if (!runner) {
    notes.push_back("no probe of this machine is kept and none can be made here");
    return default_figures();
  }
  const auto measured = measure(path, key, runner);
  if (measured) return *measured;
  notes.push_back(fmt::format("the probe of this machine failed: {}", measured.error().message));
  return default_figures();
}

}  // namespace ptrain::cluster
