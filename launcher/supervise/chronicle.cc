#include "launcher/supervise/chronicle.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "launcher/supervise/event_fields.h"

namespace ptrain::supervise {

namespace {

using nlohmann::json;
using run::EventKind;

std::string names_of(const json& fields, const char* name) {
  return fmt::format("{}", fmt::join(texts_of(fields, name), ", "));
}

// What has happened so far in the attempt that goes on.
struct Attempt {
  double start_s = 0;
  std::int64_t first_step = -1;  // -1: it did not get to train
  int num_checkpoints = 0;
  std::int64_t checkpoint = -1;
};

class Writer {
 public:
  void take(const run::Event& event) {
    switch (event.kind) {
      case EventKind::kAttemptStarted:
        return started(event);
      case EventKind::kShapeStarted:
        now_.first_step = static_cast<std::int64_t>(number_of(event.fields, "step"));
        return;
      case EventKind::kCheckpointPublished:
        ++now_.num_checkpoints;
        now_.checkpoint = static_cast<std::int64_t>(number_of(event.fields, "step"));
        return;
      case EventKind::kCheckpointFailed:
      case EventKind::kWarning:
        return add("  warning: " + text_of(event.fields, "message"));
      case EventKind::kStopRequested:
        return add("  asked to stop: " + text_of(event.fields, "reason"));
      case EventKind::kPlanChosen:
        return add("planned: " + text_of(event.fields, "layouts"));
      case EventKind::kAttemptEnded:
        return ended(event);
      case EventKind::kDecision:
        if (const auto next = text_of(event.fields, "next"); !next.empty()) add("  then: " + next);
        return;
      default:
        return;
    }
  }

  std::vector<std::string> lines() { return std::move(lines_); }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }

  void started(const run::Event& event) {
    now_ = {event.mono_s, -1, 0, -1};
    std::string line = fmt::format("attempt {} at {}: shape {}", event.attempt, event.time,
                                   text_of(event.fields, "shape"));
    if (const auto job = text_of(event.fields, "job"); !job.empty())
      line += fmt::format(", Slurm job {}", job);
    if (const auto nodes = names_of(event.fields, "nodes"); !nodes.empty()) line += ", on " + nodes;
    add(line);
  }

  void ended(const run::Event& event) {
    if (now_.num_checkpoints > 0)
      add(fmt::format("  {} checkpoint{}, the last of step {}", now_.num_checkpoints,
                      now_.num_checkpoints == 1 ? "" : "s", now_.checkpoint));
    const auto code = static_cast<int>(number_of(event.fields, "code"));
    const std::string steps = now_.first_step < 0
                                  ? "before it trained"
                                  : fmt::format("at step {:.0f}, from step {}",
                                                number_of(event.fields, "step"), now_.first_step);
    add(fmt::format("  ended after {:.1f} s {}: {}{}", event.mono_s - now_.start_s, steps,
                    text_of(event.fields, "reason"), code == 0 ? "" : fmt::format(" ({})", code)));
  }

  Attempt now_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> chronicle(std::span<const run::Event> events) {
  Writer writer;
  for (const auto& event : events) writer.take(event);
  return writer.lines();
}

std::string goodput_text(double trained_s, double held_s) {
  if (held_s <= 0) return "";
  return fmt::format("trained for {:.1f} s of {:.1f} s in which machines were held ({:.0f} %)",
                     trained_s, held_s, 100 * trained_s / held_s);
}

}  // namespace ptrain::supervise
