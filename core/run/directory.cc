#include "core/run/directory.h"

#include <fmt/format.h>

namespace ptrain::run {

std::string Directory::recipe() const { return root + "/recipe.yaml"; }
std::string Directory::plan() const { return root + "/plan.json"; }
std::string Directory::events() const { return root + "/events.jsonl"; }
std::string Directory::metrics() const { return root + "/metrics.jsonl"; }
std::string Directory::verdict() const { return root + "/verdict.json"; }
std::string Directory::lock() const { return root + "/lock"; }
std::string Directory::job() const { return root + "/job.json"; }
std::string Directory::script() const { return root + "/job.sh"; }
std::string Directory::job_output(const std::string& job) const {
  return fmt::format("{}/logs/slurm-{}.out", root, job);
}
std::string Directory::offload() const { return root + "/offload"; }
std::string Directory::trace() const { return root + "/trace"; }
std::string Directory::trace(int attempt, int rank) const {
  return fmt::format("{}/attempt-{}-rank-{}.json", trace(), attempt, rank);
}
std::string Directory::checkpoints() const { return root + "/checkpoints"; }

std::string Directory::checkpoint(std::int64_t step) const {
  return fmt::format("{}/checkpoints/step-{:08}", root, step);
}

std::string Directory::parity() const { return root + "/parity"; }
std::string Directory::parity(int attempt, int rank) const {
  return fmt::format("{}/attempt-{}-rank-{}.json", parity(), attempt, rank);
}

std::string Directory::attempt_folder(int attempt) const {
  return fmt::format("{}/logs/attempt-{}", root, attempt);
}

std::string Directory::attempt_plan(int attempt) const {
  return attempt_folder(attempt) + "/plan.json";
}

std::string Directory::launcher_log(int attempt) const {
  return attempt_folder(attempt) + "/launcher.log";
}

std::string Directory::request(int attempt) const {
  return attempt_folder(attempt) + "/request.json";
}

std::string Directory::rank_board(int attempt) const {
  return attempt_folder(attempt) + "/ranks.json";
}

std::string Directory::rank_log(int attempt, int rank) const {
  return fmt::format("{}/rank-{}.log", attempt_folder(attempt), rank);
}

}  // namespace ptrain::run
