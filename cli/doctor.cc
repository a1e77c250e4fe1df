#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/engine_module.h"
#include "cli/job_preflight.h"
#include "core/run/build_id.h"
#include "launcher/cluster/host.h"
#include "launcher/preflight/gpu_health.h"
#include "launcher/preflight/node_check.h"
#include "launcher/preflight/preflight.h"
#include "launcher/start/choose.h"
#include "launcher/start/environment.h"
#include "launcher/start/mpirun.h"

namespace ptrain::cli {

namespace {

using Kind = Symptom::Kind;
constexpr std::int64_t kFewFiles = 128;  // of a rank among few others

Symptom failed(std::string part, const Error& error) {
  return {Kind::kFailed, std::move(part), error.message, error.hint};
}

template <class T, class Text>
Symptom of(const std::string& part, const Result<T>& result, Text text) {
  return result ? Symptom{Kind::kFine, part, text(*result)} : failed(part, result.error());
}

Symptom of_check(const std::string& part, const Status& status, const std::string& text) {
  return status ? Symptom{Kind::kFine, part, text} : failed(part, status.error());
}

Symptom launcher() {
  const auto mpirun = start::Mpirun::find();
  return of("mpirun", mpirun, [](const auto& found) {
    return found.command({"", "", "", 1, 1}).arguments.front();
  });
}

Symptom machine() {
  const auto host = cluster::this_host();
  return of("machine", host, [](const cluster::Cluster& found) {
    const auto& node = found.nodes.front();
    return fmt::format("{} cores, {:.1f} GiB of memory, {} GPUs ({})", node.num_cores,
                       static_cast<double>(node.memory_bytes) / (1 << 30), node.num_gpus,
                       cluster::processor_name());
  });
}

// This machine by the rules for nodes.
void look_here(std::vector<Symptom>& symptoms) {
  auto report = preflight::check_node({});
  preflight::look_at_gpus(report);
  preflight::Needs needs;
  needs.open_files = kFewFiles;
  const auto findings = preflight::judge(needs, {report});
  for (const auto& finding : findings)
    symptoms.push_back(
        {finding.refuses ? Kind::kFailed : Kind::kNote, "machine", finding.what, finding.remedy});
}

void look_at_job(const cluster::Allocation& allocation, std::vector<Symptom>& symptoms) {
  symptoms.push_back(of_check("pmix", start::check_pmix_plugin(), "Slurm's plugin is there"));
  const auto findings = cluster::allocated_nodes(allocation).and_then([&](const auto& nodes) {
    preflight::Needs needs;
    needs.open_files = kFewFiles;
    needs.gpus_too = allocation.has_gpus;
    return look_at_nodes(std::filesystem::current_path(), nodes, needs);
  });
  if (!findings) {
    symptoms.push_back(failed("nodes", findings.error()));
    return;
  }
  for (const auto& finding : *findings)
    symptoms.push_back({finding.refuses ? Kind::kFailed : Kind::kNote, finding.node, finding.what,
                        finding.remedy});
  if (std::ranges::none_of(*findings, &preflight::Finding::refuses))
    symptoms.push_back({Kind::kFine, "nodes",
                        fmt::format("{}: one ptrain, this folder is shared, each reaches the next",
                                    allocation.nodes)});
}

}  // namespace

std::vector<Symptom> examine() {
  std::vector<Symptom> symptoms{{Kind::kFine, "ptrain", std::string(run::build_id())}};
  symptoms.push_back(of("engine", find_engine(), [](const auto& path) { return path; }));
  symptoms.push_back(machine());
  look_here(symptoms);
  const auto allocation = start::usable_allocation();
  if (allocation) {
    look_at_job(*allocation, symptoms);
  } else {
    symptoms.push_back(launcher());
    symptoms.push_back(
        of_check("limits", start::check_environment(64, 10), "enough open files for 64 ranks"));
  }
  return symptoms;
}

std::string to_text(const Symptom& symptom) {
  const char* word = symptom.kind == Kind::kFine   ? "ok"
                     : symptom.kind == Kind::kNote ? "note"
                                                   : "FAILED";
  return fmt::format("{:<8}{}{}{}{}{}", word, symptom.part, symptom.part.empty() ? "" : ": ",
                     symptom.what, symptom.remedy.empty() ? "" : "; ", symptom.remedy);
}

}  // namespace ptrain::cli
