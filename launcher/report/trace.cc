#include "launcher/report/trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/program/action.h"
#include "launcher/base/file.h"
#include "launcher/report/lines.h"

namespace ptrain::report {

namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr double kMicro = 1e-6;
constexpr int kNumLanes = static_cast<int>(program::Lane::kCopyIn) + 1;

// The spans of a trace, null where it cannot be read.
json events_of(const std::string& path) {
  const auto text = read_file(path, kMostBytes);
  auto events = text ? json::parse(*text, nullptr, false) : json();
  return events.is_array() ? events : json();
}

double step_of(const json& event) {
  const auto args = event.find("args");
  const bool has_step = text_in(event, "ph") == "X" && args != event.end() && args->is_object();
  return has_step ? number_in(*args, "step") : std::numeric_limits<double>::quiet_NaN();
}

double last_step(const json& events) {
  double last = -1;
  for (const auto& event : events)
    if (event.is_object()) last = std::max(last, step_of(event));  // NaN is never greater
  return last;
}

std::vector<Span> spans_of(const json& events, double step) {
  std::vector<Span> spans;
  for (const auto& event : events) {
    if (!event.is_object() || step_of(event) != step) continue;
    const double start = number_in(event, "ts"), lasts = number_in(event, "dur"),
                 lane = number_in(event, "tid");
    if (!(start >= 0 && lasts >= 0 && lane >= 0 && lane < kNumLanes)) continue;
    spans.push_back({static_cast<int>(lane), text_in(event, "cat"), text_in(event, "name"),
                     start * kMicro, (start + lasts) * kMicro});
  }
  return spans;
}

// Seconds from the first action of all ranks on.
void start_at_zero(TracedStep& traced) {
  double first = std::numeric_limits<double>::max();
  for (const auto& rank : traced.ranks)
    for (const Span& span : rank.spans) first = std::min(first, span.start_s);
  for (auto& rank : traced.ranks)
    for (Span& span : rank.spans) {
      span.start_s -= first;
      span.end_s -= first;
    }
}

}  // namespace

TracedStep read_trace(const run::Directory& directory, int last_attempt, int most_ranks) {
  TracedStep traced;
  int attempt = last_attempt;
  while (attempt > 0 && !is_regular_file(directory.trace(attempt, 0))) --attempt;
  if (attempt <= 0) return traced;
  traced.attempt = attempt;
  double step = -1;
  for (int rank = 0; rank < most_ranks && is_regular_file(directory.trace(attempt, rank)); ++rank) {
    const json events = events_of(directory.trace(attempt, rank));
    if (events.is_null()) ++traced.unreadable;
    if (step < 0) step = last_step(events);
    auto spans = spans_of(events, step);
    if (!spans.empty()) traced.ranks.push_back({rank, std::move(spans)});
  }
  traced.step = static_cast<std::int64_t>(std::clamp(step, -1.0, 9e15));
  start_at_zero(traced);
  return traced;
}

}  // namespace ptrain::report
