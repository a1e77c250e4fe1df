#include "launcher/submit/job_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/run/build_id.h"
#include "core/run/json_fields.h"
#include "launcher/base/file.h"
#include "launcher/submit/job_state.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::submit {

namespace {

tl::unexpected<Error> changed(const std::string& path, const std::string& resume) {
  return fail(ExitCode::kUsage,
              fmt::format("{} was changed after the job was submitted, which was planned and "
                          "tested with the old one",
                          path),
              "submit it again with " + resume + ", or a changed recipe with `ptrain run`");
}

bool has_verdict_since(const run::Directory& directory, const std::string& file) {
  std::error_code error;
  const auto verdict = std::filesystem::last_write_time(directory.verdict(), error);
  if (error) return false;
  const auto since = std::filesystem::last_write_time(file, error);
  return !error && verdict >= since;
}

}  // namespace

std::string name_of(const JobFile& file) { return name_of(file.job, file.task); }

std::string to_text(const JobFile& file) {
  return run::dump_line({{"version", 1},
                         {"job", file.job},
                         {"recipe", file.recipe},
                         {"recipe_hash", file.recipe_hash},
                         {"plan_hash", file.plan_hash},
                         {"build", file.build},
                         {"started", file.started},
                         {"num_tasks", file.num_tasks},
                         {"task", file.task}});
}

Result<JobFile> job_file_from_text(std::string_view text) {
  PTRAIN_TRY(const nlohmann::json json, run::parse_json(text, "job.json"));
  JobFile file;
  run::FieldReader reader(json, "job.json");
  reader.get("job", file.job)
      .get("recipe", file.recipe)
      .get("recipe_hash", file.recipe_hash)
      .get("plan_hash", file.plan_hash)
      .get("build", file.build)
      .get("started", file.started);
  if (json.contains("num_tasks")) reader.get("num_tasks", file.num_tasks);
  if (json.contains("task")) reader.get("task", file.task);
  PTRAIN_CHECK(reader.status());
  return file;
}

Result<JobFile> describe(const run::Directory& directory, const std::string& recipe) {
  JobFile file;
  file.recipe = recipe;
  PTRAIN_TRY(file.recipe_hash, hash_of_file(directory.recipe()));
  PTRAIN_TRY(file.plan_hash, hash_of_file(directory.plan()));
  file.build = run::build_id();
  return file;
}

Result<JobFile> read_job(const run::Directory& directory) {
  constexpr std::size_t kMostJob = std::size_t{1} << 20;
  auto file = read_file(directory.job(), kMostJob).and_then(job_file_from_text);
  if (file) return file;
  file.error().place.file = directory.job();
  file.error().hint = "remove the file once `squeue --me` shows no job of this run";
  return file;
}

Status write_job(const run::Directory& directory, const JobFile& file) {
  return publish_file(directory.job(), to_text(file));
}

Status set_number(const run::Directory& directory, const std::string& job) {
  PTRAIN_TRY(JobFile file, read_job(directory));
  if (file.started) return {};
  file.job = job;
  return write_job(directory, file);
}

bool has_job(const run::Directory& directory) {
  const auto file = read_job(directory);
  return file ? !file->job.empty() : is_regular_file(directory.job());
}

Status check_unchanged(const run::Directory& directory, const JobFile& submitted) {
  PTRAIN_TRY(const JobFile now, describe(directory, submitted.recipe));
  const std::string resume = supervise::resume_command(directory);
  if (now.recipe_hash != submitted.recipe_hash) return changed(directory.recipe(), resume);
  if (now.plan_hash != submitted.plan_hash) return changed(directory.plan(), resume);
  if (now.build == submitted.build) return {};
  return fail(ExitCode::kUsage,
              fmt::format("this ptrain is build {}, the job was submitted by build {}", now.build,
                          submitted.build),
              "submit it again with " + resume);
}

bool has_verdict(const run::Directory& directory, const JobFile& file) {
  return has_verdict_since(directory, file.num_tasks > 0 ? directory.job() : directory.script());
}

}  // namespace ptrain::submit
