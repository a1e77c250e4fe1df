#include "cli/engine_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/torch_version.h"
#include "core/run/build_id.h"
#include "engine/entry.h"
#include "launcher/base/file.h"

namespace ptrain::cli {

Result<std::string> own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(ExitCode::kEnvironment, "cannot find the running binary: " + error.message(),
                "ptrain needs /proc");
  return path.string();
}

EngineKind engine_of(const run::Plan& plan) {
  const bool names_gpus =
      std::ranges::any_of(plan.ranks, [](const run::RankPlace& place) { return place.gpu >= 0; });
  return names_gpus ? EngineKind::kGpu : EngineKind::kProcessor;
}

Result<std::string> find_engine(EngineKind kind) {
  const bool is_gpu = kind == EngineKind::kGpu;
  const char* const name = is_gpu ? "libptrain_engine_cuda.so" : "libptrain_engine.so";
  PTRAIN_TRY(const std::string binary, own_path());
  const std::string path = (std::filesystem::path(binary).parent_path() / name).string();
  if (is_regular_file(path)) return path;
  if (is_gpu)
    return fail(
        ExitCode::kEnvironment,
        fmt::format("the plan puts ranks on GPUs, but this ptrain is built without CUDA: {} "
                    "is missing",
                    path),
        "build it with the CMake preset `cuda`, or give a cluster file without GPUs "
        "(--cluster, cluster.file)");
  return fail(ExitCode::kEnvironment, fmt::format("no engine: {} is missing", path),
              "build it (scripts/setup), or use a ptrain that was built with PTRAIN_ENGINE=ON");
}

Result<std::string> find_engine_of(const run::Plan& plan) {
  const EngineKind kind = engine_of(plan);
  const recipe::Model& model = plan.recipe.model;
  if (kind == EngineKind::kGpu && (model.num_experts > 0 || model.kv_lora_rank > 0))
    return fail(ExitCode::kUsage,
                fmt::format("models of family {} can be planned for GPUs, but not run there in "
                            "this version: experts and latent attention have no kernels for them",
                            model.family),
                "give a cluster file without GPUs (--cluster, cluster.file), or choose another "
                "model.family");
  return find_engine(kind);
}

namespace {

Result<ptrain_engine_main_t> open_engine(EngineKind kind) {
  PTRAIN_TRY(const std::string path, find_engine(kind));
  void* module = ::dlopen(path.c_str(), RTLD_LOCAL | RTLD_NOW);
  if (module == nullptr)
    return fail(ExitCode::kEnvironment, fmt::format("cannot open the engine: {}", ::dlerror()),
                "its libraries (torch or CUDA, MPI) are missing or of another version: run "
                "scripts/setup");
  PTRAIN_CHECK(check_torch_version());
  void* entry = ::dlsym(module, PTRAIN_ENGINE_MAIN);
  if (entry == nullptr)
    return fail(ExitCode::kEnvironment, fmt::format("{} is not an engine of ptrain", path),
                "build ptrain and its engine again, together");
  return reinterpret_cast<ptrain_engine_main_t>(entry);
}

}  // namespace

Result<int> run_engine(const run::Request& request, EngineKind kind) {
  PTRAIN_TRY(const ptrain_engine_main_t engine_main, open_engine(kind));
  const std::string build(run::build_id());
  return engine_main(build.c_str(), run::to_json_text(request).c_str());
}

}  // namespace ptrain::cli
