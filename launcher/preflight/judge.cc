#include "launcher/preflight/judge.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "launcher/base/file.h"

namespace ptrain::preflight {

namespace {

constexpr double kClockTolerance = 5;               // seconds
constexpr double kSlowCore = 0.7, kSlowWay = 0.25;  // of the median; ways vary more
constexpr std::int64_t kFewInodes = 1000;

double gibibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

class Judge {
 public:
  Judge(const Needs& needs, const std::vector<NodeReport>& reports)
      : needs_(needs), reports_(reports) {}

  std::vector<Finding> findings() {
    missing();
    differing("binary", &NodeReport::binary,
              "install one ptrain for all nodes, or the same on each");
    differing("engine", &NodeReport::engine,
              "install one ptrain for all nodes, or the same on each");
    for (const auto& report : reports_) {
      if (needs_.directory) directory(report);
      machine(report);
      gpus(report);
      clock(report);
    }
    slow("computes", &NodeReport::speed, kSlowCore);
    slow("sends to its neighbour", &NodeReport::next_bytes_per_s, kSlowWay);
    std::ranges::stable_sort(findings_, std::greater{}, &Finding::refuses);
    return std::move(findings_);
  }

 private:
  void refuse(const std::string& node, std::string what, std::string remedy) {
    findings_.push_back({true, node, std::move(what), std::move(remedy)});
  }
  void warn(const std::string& node, std::string what, std::string remedy) {
    findings_.push_back({false, node, std::move(what), std::move(remedy)});
  }

  void missing() {
    for (const auto& node : needs_.nodes)
      if (std::ranges::find(reports_, node, &NodeReport::node) == reports_.end())
        findings_.push_back(
            {true, node, "does not answer", fmt::format("leave it out: --exclude={}", node), true});
  }

  // Names the nodes that differ from most.
  void differing(std::string_view what, std::string NodeReport::*member, const char* remedy) {
    std::map<std::string, int> count;
    for (const auto& report : reports_) ++count[report.*member];
    if (count.size() < 2) return;
    const auto most =
        std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
    for (const auto& report : reports_)
      if (report.*member != most->first)
        refuse(report.node,
               report.*member == "" ? fmt::format("has no {}", what)
                                    : fmt::format("has another {} than most nodes", what),
               remedy);
  }

  void directory(const NodeReport& report) {
    if (!report.knows_directory)
      return refuse(report.node, "does not get done with looking at the run directory",
                    "see whether its file system answers there");
    if (!report.sees_mark)
      return refuse(report.node,
                    fmt::format("does not see what is written to the run directory elsewhere, not "
                                "even {} s later",
                                kSeenWithin.count()),
                    "put runs on a file system that all nodes share (--directory)");
    if (!report.write_error.empty())
      return refuse(report.node, report.write_error, "let it be written from every node");
    if (report.plan != reports_.front().plan)
      refuse(report.node, "reads another plan.json than the others",
             "its copy of the run directory is late or stale: look at the file system");
    if (report.disk_free >= 0 && report.disk_free < needs_.disk_bytes)
      warn(report.node,
           fmt::format("{:.1f} GiB are free for the run directory, its checkpoints may take {:.1f}",
                       gibibytes(report.disk_free), gibibytes(needs_.disk_bytes)),
           "make room, lower checkpoint.keep, or choose another --directory");
    if (report.inodes_free >= 0 && report.inodes_free < kFewInodes)
      refuse(report.node,
             fmt::format("only {} more files fit where the run directory is", report.inodes_free),
             "remove files there");
  }

  void machine(const NodeReport& report) {
    if (!report.temporary_error.empty())
      refuse(report.node, "temporary files cannot be made: " + report.temporary_error,
             "set TMPDIR to a local folder that can be written");
    if (report.memory_available >= 0 && report.memory_available < needs_.memory_bytes)
      warn(report.node,
           fmt::format("{:.1f} GiB of memory are free, its ranks are predicted to take {:.1f}",
                       gibibytes(report.memory_available), gibibytes(needs_.memory_bytes)),
           "see what else runs there");
    if (report.open_files >= 0 && report.open_files < needs_.open_files)
      refuse(report.node,
             fmt::format("a process may open {} files, a rank needs {}", report.open_files,
                         needs_.open_files),
             "raise the limit (ulimit -n, limits.conf, LimitNOFILE of slurmd)");
    if (!report.next_error.empty())
      refuse(report.node, report.next_error,
             "look at the network between the two, or leave one of them out with --exclude");
  }

  void gpus(const NodeReport& report) {
    constexpr const char* kRemedy =
        "ask for GPUs (--gpus-per-node), or look at the driver there (nvidia-smi)";
    const bool known = report.num_gpus >= 0;
    if (needs_.gpus > 0 && !known)
      return refuse(report.node, "does not get done with looking at its GPUs", kRemedy);
    if (known && report.num_gpus < needs_.gpus)
      refuse(report.node,
             fmt::format("{} GPUs can be used, the plan puts {} ranks there{}{}", report.num_gpus,
                         needs_.gpus, report.gpu_tool_error.empty() ? "" : "; ",
                         report.gpu_tool_error),
             kRemedy);
    else if (!report.gpu_tool_error.empty())
      warn(report.node, report.gpu_tool_error, "look at the driver there (nvidia-smi)");
    if (!report.gpu_error.empty())
      refuse(report.node, report.gpu_error,
             fmt::format("have it looked at, and leave the node out meanwhile: --exclude={}",
                         report.node));
  }

  void clock(const NodeReport& report) {
    if (needs_.answered_s <= 0 || report.time_s < 0) return;
    const double early = needs_.asked_s - report.time_s, late = report.time_s - needs_.answered_s;
    const double off = std::max(early, late);
    if (off < kClockTolerance) return;
    warn(report.node,
         fmt::format("its clock is {:.0f} s {}", off, early > late ? "behind" : "ahead"),
         "times of its files and logs mislead: set it by NTP");
  }

  void slow(std::string_view what, double NodeReport::*member, double least) {
    std::vector<double> values;
    for (const auto& report : reports_)
      if (report.*member > 0) values.push_back(report.*member);
    if (values.size() < 3) return;
    std::ranges::sort(values);
    const double median = values[values.size() / 2];
    for (const auto& report : reports_)
      if (report.*member > 0 && report.*member < least * median)
        warn(report.node,
             fmt::format("{} at {:.0f} % of the median of the nodes", what,
                         100 * report.*member / median),
             fmt::format("every step waits for it: leave it out with --exclude={}", report.node));
  }

  const Needs& needs_;
  const std::vector<NodeReport>& reports_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge(const Needs& needs, const std::vector<NodeReport>& reports) {
  return Judge(needs, reports).findings();
}

std::string to_text(const Finding& finding) {
  return fmt::format("{}{}{} ({})", finding.node, finding.node.empty() ? "" : ": ", finding.what,
                     finding.remedy);
}

}  // namespace ptrain::preflight
