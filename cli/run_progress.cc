#include "cli/run_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "launcher/resume/verify.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

Status check_not_lost(const run::Directory& directory) {
  PTRAIN_TRY(const auto events, supervise::read_events(directory.events()));
  const auto is_published = [](const run::Event& event) {
    return event.kind == run::EventKind::kCheckpointPublished;
  };
  if (std::none_of(events.begin(), events.end(), is_published)) return {};
  return fail(ExitCode::kUnusable,
              fmt::format("{} wrote checkpoints, but none is left in {}", directory.root,
                          directory.checkpoints()),
              "bring one of them back from a copy, or start a new run");
}

bool is_finished(const run::Directory& directory, const run::Plan& plan) {
  const std::int64_t step = supervise::newest_step(directory);
  if (!supervise::next_shape_name(plan, std::max(step, plan.origin.step)).empty()) return false;
  if (step < 0) return true;
  const auto whole = resume::verify(directory.checkpoint(step), resume::Look::kContent);
  if (!whole)
    say(
        fmt::format("warning: all {} steps are done, but the last checkpoint is damaged: {}; the "
                    "newest good one goes on",
                    step, whole.error().message));
  return whole.has_value();
}

}  // namespace ptrain::cli
