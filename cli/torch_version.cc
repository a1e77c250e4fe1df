#include "cli/torch_version.h"

#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace ptrain::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBuiltWith = PTRAIN_TORCH_VERSION;
constexpr std::string_view kLibrary = "libtorch_cpu.so";

int keep_torch(dl_phdr_info* info, std::size_t, void* path) {
  const fs::path name = info->dlpi_name;
  if (name.filename() != kLibrary) return 0;
  *static_cast<fs::path*>(path) = name;
  return 1;
}

// The text between the first two quotes of the line that sets __version__.
std::string version_in_python(const fs::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("__version__")) continue;
    const auto begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin < end) return line.substr(begin + 1, end - begin - 1);
  }
  return "";
}

// "2.11.0+cpu" and "2.11.0" are one version: what follows tells how it was built.
std::string_view without_build(std::string_view version) {
  return version.substr(0, version.find('+'));
}

}  // namespace

std::string torch_version_in(const std::string& folder) {
  const std::string version = version_in_python(fs::path(folder) / "version.py");
  if (!version.empty()) return version;
  std::ifstream file(fs::path(folder) / "build-version");
  std::string line;
  std::getline(file, line);
  return line;
}

Status check_torch_version() {
  fs::path library;
  ::dl_iterate_phdr(keep_torch, &library);
  if (library.empty()) return {};
  const fs::path folder = library.parent_path().parent_path();
  const std::string version = torch_version_in(folder.string());
  if (version.empty() || without_build(version) == kBuiltWith) return {};
  return fail(ExitCode::kEnvironment,
              fmt::format("torch in {} is {}, but this ptrain was built with {}", folder.string(),
                          version, kBuiltWith),
              "run scripts/setup, and take other versions of torch out of LD_LIBRARY_PATH");
}

}  // namespace ptrain::cli
