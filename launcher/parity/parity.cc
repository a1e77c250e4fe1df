#include "launcher/parity/parity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "launcher/base/file.h"
#include "launcher/parity/plans.h"
#include "launcher/supervise/attempt.h"
#include "launcher/supervise/processes.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::parity {

namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 32;

class Driver {
 public:
  explicit Driver(const supervise::Setup& setup)
      : setup_(setup), log_(setup.directory), progress_(stderr, 0, 1) {}

  Result<Outcome> run() {
    supervise::adopt_orphans();
    PTRAIN_CHECK(make_folder());
    for (std::size_t i = 0; i < setup_.plan.shapes.size(); ++i) {
      const run::Plan plan = with_one_micro_batch(setup_.plan, i);
      PTRAIN_TRY(const bool compared, compare_shape(plan, on_one_rank(plan)));
      if (!compared) break;
    }
    PTRAIN_CHECK(finish());
    return std::move(outcome_);
  }

 private:
  Status make_folder() const {
    const std::string path = setup_.directory.parity();
    if (::mkdir(path.c_str(), 0700) == 0) return {};
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot create {}: {}", path, std::strerror(errno)),
                "run where you may write, or give --directory");
  }

  // False: ranks failed or were stopped, as the verdict says.
  Result<bool> compare_shape(const run::Plan& layout, const run::Plan& reference) {
    const run::ShapePlan& shape = layout.shapes.front();
    const std::int64_t tokens = layout.recipe.shapes.front().global_batch_tokens;
    Records ours, truth;
    PTRAIN_TRY(const bool ran, attempt(layout, ours));
    if (!ran) return false;
    PTRAIN_TRY(const bool ran_alone, attempt(reference, truth));
    if (!ran_alone) return false;
    PTRAIN_TRY(Comparison comparison, compare(ours, truth, precision_of(layout)));
    outcome_.shapes.push_back({shape.name, shape.layout, tokens, std::move(comparison)});
    return true;
  }

  Result<bool> attempt(const run::Plan& plan, Records& records) {
    const run::ShapePlan& shape = plan.shapes.front();
    const int number = supervise::next_attempt(setup_.directory);
    PTRAIN_TRY(auto prepared, supervise::prepare_attempt(setup_, folder_, plan, shape, number));
    prepared.request.mode = run::Mode::kParity;
    progress_.say(fmt::format("parity: shape {}: {} ({} rank{})", shape.name,
                              mesh::to_string(shape.layout), prepared.launch.num_ranks,
                              prepared.launch.num_ranks == 1 ? "" : "s"));
    log_.set_attempt(number);
    PTRAIN_CHECK(log_.write(run::EventKind::kAttemptStarted, -1,
                            {{"shape", shape.name}, {"num_ranks", prepared.launch.num_ranks}}));
    PTRAIN_TRY(
        const supervise::AttemptEnd end,
        supervise::run_attempt(prepared, {log_, progress_, measurements_, goodput_, save_times_},
                               setup_.signals));
    PTRAIN_CHECK(log_.write(run::EventKind::kAttemptEnded, -1, run::to_json(end.verdict)));
    outcome_.verdict = end.verdict;
    outcome_.verdict.step = 0;  // nothing was trained
    if (end.verdict.code != ExitCode::kDone) return false;
    PTRAIN_CHECK(read(number, prepared.launch.num_ranks, records));
    return true;
  }

  Status read(int number, int num_ranks, Records& records) const {
    for (int rank = 0; rank < num_ranks; ++rank) {
      const std::string path = setup_.directory.parity(number, rank);
      PTRAIN_TRY(const std::string text, read_file(path, kMostRecords));
      PTRAIN_TRY(const Records more, records_from_text(text, path));
      add(records, more);
    }
    return {};
  }

  Status finish() {
    run::Verdict& verdict = outcome_.verdict;
    if (is_stopped(verdict))
      verdict.reason = "parity: stopped before all was compared; nothing was trained";
    else if (verdict.code == ExitCode::kDone)
      judge(verdict);
    else
      for (const auto& line : supervise::failure_lines(setup_.directory, verdict))
        progress_.say(line);
    PTRAIN_CHECK(log_.write(verdict));
    PTRAIN_CHECK(
        log_.write(run::EventKind::kRunEnded, -1,
                   {{"code", static_cast<int>(verdict.code)}, {"reason", verdict.reason}}));
    progress_.say("run directory: " + setup_.directory.root);
    return {};
  }

  static bool is_stopped(const run::Verdict& verdict) {
    return verdict.code == ExitCode::kStopped || verdict.code == ExitCode::kPreempted;
  }

  void judge(run::Verdict& verdict) const {
    verdict.reason = "parity: each layout equals one rank; nothing was trained";
    for (const ShapeParity& shape : outcome_.shapes) {
      if (shape.comparison.equal()) continue;
      const auto& first = shape.comparison.first_segment ? shape.comparison.first_segment
                                                         : shape.comparison.first_parameter;
      verdict.code = ExitCode::kRankError;
      verdict.reason = fmt::format("parity: shape '{}' differs from one rank, first in {}",
                                   shape.name, describe(*first));
      return;
    }
  }

  const supervise::Setup& setup_;
  supervise::EventLog log_;
  supervise::Progress progress_;
  supervise::Measurements measurements_;
  supervise::Goodput goodput_;
  supervise::SaveTimes save_times_;
  supervise::FolderWatch folder_{setup_.directory};
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run_parity(const supervise::Setup& setup) { return Driver(setup).run(); }

bool is_parity_run(const run::Directory& directory) {
  std::error_code ignored;  // what cannot be looked at is none
  return std::filesystem::is_directory(directory.parity(), ignored);
}

}  // namespace ptrain::parity
