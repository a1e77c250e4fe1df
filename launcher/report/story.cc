#include "launcher/report/story.h"

#include "core/recipe/shapes.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/report/lines.h"
#include "launcher/supervise/event_log.h"
#include "launcher/supervise/policy.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/run_folder.h"

namespace ptrain::report {

namespace {

constexpr int kMostTracedRanks = 4;

Status read_steps(const run::Directory& directory, Story& story) {
  PTRAIN_TRY(const Lines lines, read_lines(directory.metrics()));
  story.damaged_metrics = lines.damaged;
  for (const auto& json : lines.objects) {
    const auto step = json.find("step");
    if (step == json.end() || !step->is_number_integer()) {
      ++story.damaged_metrics;
      continue;
    }
    story.steps.push_back({step->get<std::int64_t>(), text_in(json, "shape"),
                           number_in(json, "loss"), number_in(json, "grad_norm"),
                           number_in(json, "learning_rate"), number_in(json, "step_s"),
                           number_in(json, "tokens_per_s"), number_in(json, "tokens_total"),
                           number_in(json, "bytes_peak")});
  }
  return {};
}

Status read_events(const run::Directory& directory, Story& story) {
  PTRAIN_TRY(const Lines lines, read_lines(directory.events()));
  story.damaged_events = lines.damaged;
  for (const auto& json : lines.objects) {
    auto event = run::event_from_json(json);
    if (event)
      story.events.push_back(std::move(*event));
    else
      ++story.damaged_events;
  }
  return {};
}

void read_state(const run::Directory& directory, int last_attempt, Story& story) {
  story.is_good = supervise::supervisor_of(directory) != 0;
  story.state = story.is_good ? "it is running" : "it was interrupted: there is no verdict";
  if (story.is_good || !is_regular_file(directory.verdict())) return;
  const auto verdict = supervise::read_verdict(directory.verdict());
  if (!verdict) {
    story.state = "its verdict.json cannot be read: " + verdict.error().message;
  } else if (verdict->attempt == last_attempt) {
    story.state = supervise::verdict_line(*verdict);
    story.is_good = !supervise::is_failure(verdict->code);
  }
}

}  // namespace

Result<Story> read_story(const run::Directory& directory) {
  Story story;
  story.folder = directory.root;
  PTRAIN_TRY(story.plan, read_plan(directory.plan()));
  PTRAIN_CHECK(read_steps(directory, story));
  PTRAIN_CHECK(read_events(directory, story));
  const int last_attempt = supervise::next_attempt(directory) - 1;
  read_state(directory, last_attempt, story);
  story.traced = read_trace(directory, last_attempt, kMostTracedRanks);
  return story;
}

const run::ShapePlan* shape_of(const Story& story, std::int64_t step) {
  const recipe::ShapeSpan span = recipe::shape_after(story.plan.recipe, step - 1);
  const bool is_planned = step <= span.last_step && span.index < story.plan.shapes.size();
  return is_planned ? &story.plan.shapes[span.index] : nullptr;
}

}  // namespace ptrain::report
