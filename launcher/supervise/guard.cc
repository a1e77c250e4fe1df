#include "launcher/supervise/guard.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "launcher/cluster/hostlist.h"
#include "launcher/cluster/slurm_command.h"

namespace ptrain::supervise {

namespace {

using cluster::value_of;
using std::chrono::milliseconds;
constexpr std::chrono::seconds kLook{15};
constexpr int kTurns = 40;  // of 50 ms, for srun to end its task

// Slurm counts the starts of a batch job there, from 1 on.
bool is_batch_job(std::string_view shown) {
  const auto flag = value_of(shown, "BatchFlag");
  return !flag.empty() && flag != "0";
}

// Slurm's words for a job that was submitted with --no-requeue.
bool may_not_be_requeued(const Error& error) {
  return error.message.find("disabled") != std::string::npos;
}

// Slurm's words for a job that it has forgotten or never had.
bool is_unknown(const Error& error) {
  return error.message.find("Invalid job id") != std::string::npos;
}

}  // namespace

Guard::~Guard() {
  if (!process_) return;
  process_->signal_group(SIGTERM);
  for (int turn = 0; turn < kTurns && !process_->poll(); ++turn)
    std::this_thread::sleep_for(milliseconds(50));
}

Status Guard::ensure(const std::vector<std::string>& nodes) {
  if (command_ == nullptr || job_.empty()) return {};
  // Slurm tells that a node is lost, and ends srun, long after we know it.
  const bool has_node = std::ranges::find(nodes, node_) != nodes.end();
  if (process_ && has_node && !process_->poll()) return {};
  const auto other = std::ranges::find_if(nodes, [&](const auto& node) { return node != here_; });
  if (other == nodes.end()) return {};
  process_.reset();
  PTRAIN_TRY(auto started, base::Subprocess::start(command_(*other, job_)));
  process_.emplace(std::move(started));
  node_ = *other;
  return {};
}

bool is_headless(std::string_view shown) {
  const auto host = value_of(shown, "BatchHost");
  if (value_of(shown, "JobState") != "RUNNING" || !is_batch_job(shown)) return false;
  const auto nodes = cluster::expand_hostlist(value_of(shown, "NodeList"));
  return !host.empty() && nodes && std::ranges::find(*nodes, host) == nodes->end();
}

Status guard_job(const std::string& job) {
  // A controller may be away for a while: what it does not answer is asked again.
  for (;; std::this_thread::sleep_for(kLook)) {
    const auto shown = cluster::ask_slurm({"scontrol", "-o", "show", "job", job});
    if (!shown && is_unknown(shown.error())) return tl::unexpected(shown.error());
    if (!shown) continue;
    if (!is_batch_job(*shown)) return {};
    if (!is_headless(*shown)) continue;
    const auto requeued = cluster::ask_slurm({"scontrol", "requeue", job});
    if (requeued) return {};
    if (may_not_be_requeued(requeued.error()) && cluster::ask_slurm({"scancel", job})) return {};
  }
}

}  // namespace ptrain::supervise
