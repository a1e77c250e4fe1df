#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "launcher/base/file.h"
#include "launcher/plan/predicted_step.h"
#include "launcher/report/page.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::cli {

namespace {

// Lengths of documents may have become known since the run was planned.
constexpr double kSamePrediction = 0.1;

report::Span span_of(const program::Action& action, const plan::Interval& interval) {
  return {static_cast<int>(action.lane), std::string(program::to_string(action.kind)),
          program::to_text(action), interval.start_s, interval.end_s};
}

// Each action as the simulator sees it, now that figures and programs are at hand again.
Result<report::PredictedStep> predicted_actions(const report::Story& story) {
  const run::ShapePlan* shape = report::shape_of(story, story.traced.step);
  if (shape == nullptr) return fail(ExitCode::kUsage, "the plan has no shape for that step");
  PTRAIN_TRY(const plan::PlanInput input, kept_input(story.plan));
  PTRAIN_TRY(const plan::PredictedStep step, plan::predicted_step(input, *shape));
  const auto& classes = shape->predicted.classes;
  if (!classes.empty() && classes.front().program_hash != program::class_hash(step.program))
    return fail(ExitCode::kUsage, "another build of ptrain compiled its programs");
  report::PredictedStep out;
  double end_s = 0;
  for (const plan::Interval& interval : step.timeline.actions)
    end_s = std::max(end_s, interval.end_s);
  if (std::abs(end_s / shape->predicted.step_s - 1) > kSamePrediction)
    return fail(ExitCode::kUsage, "the figures that the run was planned with are no longer kept");
  out.figures = input.cluster.figures.source;
  for (const program::Action& action : step.program.actions)
    out.spans.push_back(
        span_of(action, step.timeline.actions[static_cast<std::size_t>(action.id)]));
  return out;
}

}  // namespace

Result<ExitCode> cmd_report(const ReportArguments& arguments) {
  PTRAIN_TRY(const run::Directory directory, supervise::open_run(arguments.run));
  PTRAIN_TRY(report::Story story, report::read_story(directory));
  if (!story.traced.ranks.empty()) {
    auto predicted = predicted_actions(story);
    if (predicted)
      story.predicted = std::move(*predicted);
    else
      story.predicted.missing = predicted.error().message;
  }
  const std::string path =
      arguments.to.empty() ? directory.root + "/report.html" : absolute_path(arguments.to);
  PTRAIN_CHECK(publish_file(path, report::page(story), Lasts::kUntilPowerFails));
  print_line(path);
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
