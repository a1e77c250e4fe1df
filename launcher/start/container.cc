#include "launcher/start/container.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/base/find_program.h"

namespace ptrain::start {

namespace {

// FOLDER is seen inside under the same name.
std::string mount_of(const std::string& folder) {
  return folder.find(':') == std::string::npos ? fmt::format("{0}:{0}", folder) : folder;
}

}  // namespace

bool needs_srun(const recipe::Container& container) {
  return !container.image.empty() && container.runtime == recipe::ContainerRuntime::kPyxis;
}

std::vector<std::string> opening(const recipe::Container& container,
                                 const std::vector<std::string>& folders) {
  if (container.image.empty()) return {};
  std::vector<std::string> mounts;
  for (const auto& folder : folders) mounts.push_back(mount_of(folder));
  for (const auto& folder : container.mounts) mounts.push_back(mount_of(folder));
  if (container.runtime == recipe::ContainerRuntime::kPyxis)
    return {"--container-image=" + container.image,
            fmt::format("--container-mounts={}", fmt::join(mounts, ","))};
  std::vector<std::string> out{"apptainer", "exec"};
  for (const auto& mount : mounts) out.insert(out.end(), {"--bind", mount});
  out.push_back(container.image);
  return out;
}

Status check_container(const recipe::Container& container, const std::string& srun_help) {
  if (container.image.empty()) return {};
  for (const auto& mount : container.mounts)
    if (mount.find(',') != std::string::npos || !mount.starts_with('/'))
      return fail(
          ExitCode::kUsage,
          fmt::format("cluster.container.mounts: '{}' is no absolute path without commas", mount),
          "write FOLDER or FOLDER:INSIDE");
  if (container.runtime == recipe::ContainerRuntime::kPyxis) {
    if (srun_help.find("--container-image") != std::string::npos) return {};
    return fail(ExitCode::kEnvironment,
                "cluster.container: srun knows no --container-image here, the option of Slurm's "
                "plugin pyxis",
                "ask who runs this cluster to install pyxis, or set runtime: apptainer");
  }
  if (!base::find_program("apptainer").empty()) return {};
  return fail(ExitCode::kEnvironment, "cluster.container: apptainer is not in PATH",
              "load its module before `ptrain run`, or set runtime: pyxis where Slurm has that");
}

}  // namespace ptrain::start
