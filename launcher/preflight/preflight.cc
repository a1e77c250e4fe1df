#include "launcher/preflight/preflight.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "core/model/optimizer.h"
#include "core/program/memory.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/cluster/nvidia_smi.h"
#include "launcher/preflight/node_check.h"
#include "launcher/preflight/ring.h"
#include "launcher/start/choose.h"

namespace ptrain::preflight {

namespace {

using Clock = std::chrono::steady_clock;

// One node that hangs must not hold up the others' ring, nor the step the run.
constexpr std::chrono::seconds kRingLimit{2}, kStepLimit{5};
constexpr std::chrono::milliseconds kTick{20};

// Nodes that have told of themselves may still wait for nvidia-smi, which is asked twice, and for
// the mark and the plan to be seen there.
std::chrono::seconds longest_step(const Request& request) {
  const auto limit = kStepLimit + 2 * kSeenWithin;
  return request.gpus ? limit + 2 * cluster::kNvidiaPatience : limit;
}

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The marks of this preflight, and what is left of them.
class Marks {
 public:
  Marks(const std::string& root, const std::vector<std::string>& nodes, const std::string& mark)
      : root_(root), nodes_(nodes), mark_(mark) {}
  ~Marks() {
    if (root_.empty()) return;
    ::unlink(mark_file(root_, mark_).c_str());
    for (const auto& node : nodes_) ::unlink(answer_file(root_, mark_, node).c_str());
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  Status put() const {
    return root_.empty() ? Status{}
                         : publish_file(mark_file(root_, mark_), mark_, Lasts::kUntilPowerFails);
  }
  // What a node wrote must be seen here too.
  void look_for_answers(std::vector<NodeReport>& reports) const {
    if (root_.empty()) return;
    for (auto& report : reports)
      report.sees_mark = report.sees_mark && seen_within(kSeenWithin, root_, [&] {
                           const auto answer =
                               read_file(answer_file(root_, mark_, report.node), 4096);
                           return (answer && *answer == mark_) || !report.write_error.empty();
                         });
  }

 private:
  const std::string& root_;
  const std::vector<std::string>& nodes_;
  const std::string& mark_;
};

base::Command step(const Request& request, const RingHub& hub) {
  base::Command command = start::on_each_node(request.nodes);
  const std::vector<std::string> words{
      request.worker, "preflight-node",      "--engine", request.engine,
      "--hub",        request.first_host,    "--port",   std::to_string(hub.port()),
      "--run",        request.directory.root};
  command.arguments.insert(command.arguments.end(), words.begin(), words.end());
  if (const auto plan = hash_of_file(request.directory.plan()))
    command.arguments.insert(command.arguments.end(), {"--plan", *plan});
  if (request.gpus) command.arguments.emplace_back("--gpus");
  command.environment.emplace_back(run::kControlToken, hub.token());
  return command;
}

// A node reports before it looks at GPUs and at the run directory, and once more after each.
std::vector<NodeReport> reports_in(const std::string& output) {
  std::vector<NodeReport> reports;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    auto report = report_from_line(line);
    if (!report) continue;
    std::erase_if(reports, [&](const auto& earlier) { return earlier.node == report->node; });
    reports.push_back(std::move(*report));
  }
  return reports;
}

// Serves the ring until the step ends; all that it wrote.
std::string run_step(base::Subprocess& process, RingHub& hub, const Request& request) {
  const auto start = Clock::now();
  const auto limit = longest_step(request);
  std::string output;
  for (;;) {
    hub.poll(kTick);
    if (Clock::now() - start > kRingLimit) hub.close();
    output += process.read_output();
    if (process.poll()) break;
    const auto took = Clock::now() - start;
    const bool is_silent = took > kStepLimit && reports_in(output).size() < request.nodes.size();
    if (took > limit || is_silent) {
      process.signal_group(SIGKILL);
      break;
    }
  }
  return output + process.read_output();
}

}  // namespace

std::int64_t checkpoint_bytes(const run::Plan& plan) {
  constexpr std::int64_t kBytesOfParameter = 12;
  const auto model = model::make_architecture(plan.recipe);
  return model ? model->num_parameters() * kBytesOfParameter : 0;
}

Needs needs_of(const run::Plan& plan) {
  constexpr std::int64_t kFiles = 128;
  const auto num_ranks = static_cast<std::int64_t>(plan.ranks.size());
  Needs needs;
  needs.open_files = kFiles + num_ranks;
  needs.disk_bytes = checkpoint_bytes(plan) * (plan.recipe.checkpoint.keep + 1);
  for (const auto& shape : plan.shapes)
    for (const auto& one : shape.predicted.classes)
      needs.memory_bytes =
          std::max(needs.memory_bytes,
                   program::total_bytes(one.bytes) * num_ranks / std::max(1, run::num_nodes(plan)));
  const auto on_gpus =
      std::ranges::count_if(plan.ranks, [](const auto& rank) { return rank.gpu >= 0; });
  needs.gpus = static_cast<int>(on_gpus) / std::max(1, run::num_nodes(plan));
  return needs;
}

Result<std::vector<Finding>> look_at_nodes(const Request& request, Needs needs) {
  PTRAIN_TRY(RingHub hub,
             RingHub::open(request.first_host, static_cast<int>(request.nodes.size())));
  const Marks marks(request.directory.root, request.nodes, hub.token());
  PTRAIN_CHECK(marks.put());
  needs.asked_s = wall_clock_s();
  needs.nodes = request.nodes;
  needs.directory = !request.directory.root.empty();
  PTRAIN_TRY(base::Subprocess process, base::Subprocess::start(step(request, hub)));
  const std::string output = run_step(process, hub, request);
  needs.answered_s = wall_clock_s();
  auto reports = reports_in(output);
  if (reports.empty())
    return fail(ExitCode::kEnvironment, "no node could be looked at: " + output,
                "start one by hand: srun --mpi=none hostname");
  marks.look_for_answers(reports);
  return judge(needs, reports);
}

Result<Settled> settle(const std::vector<Finding>& findings) {
  Settled settled;
  std::string refusals;
  for (const auto& finding : findings) {
    if (finding.silent) settled.silent.push_back(finding.node);
    if (finding.refuses)
      refusals += (refusals.empty() ? "" : "; ") + to_text(finding);
    else
      settled.warnings.push_back(to_text(finding));
  }
  const bool others = std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.refuses && !finding.silent; });
  if (!others) return settled;
  return fail(ExitCode::kEnvironment, "preflight: " + refusals, "`ptrain doctor` looks again");
}

}  // namespace ptrain::preflight
