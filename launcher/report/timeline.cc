#include "launcher/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/program/action.h"
#include "launcher/report/compare.h"
#include "launcher/report/html.h"
#include "launcher/supervise/narrate.h"

namespace ptrain::report {

namespace {

constexpr double kWidth = 1000, kLaneHeight = 20;
constexpr std::size_t kMostSpans = 4000;  // of a rank: a browser stays quick

// Kinds by the class that colours them.
std::string_view colour_of(std::string_view kind) {
  static constexpr std::pair<std::string_view, std::string_view> kColours[] = {
      {"FORWARD", "c1"},         {"BACKWARD", "c2"},  {"BACKWARD_INPUT", "c2"},
      {"BACKWARD_WEIGHT", "c2"}, {"RECOMPUTE", "c3"}, {"UNSHARD", "c4"},
      {"RESHARD", "c4"},         {"OPTIMIZER", "c6"}, {"REDUCE_GRAD", "c5"},
      {"GRAD_NORM", "c5"},       {"SYNC_TIED", "c5"}};
  const auto* found = std::ranges::find(kColours, kind, [](const auto& one) { return one.first; });
  return found == std::end(kColours) ? "c7" : found->second;
}

std::string legend() {
  std::string html;
  for (const auto& [css, name] : {std::pair{"c1", "forward"},
                                  {"c2", "backward"},
                                  {"c3", "recompute"},
                                  {"c4", "gather"},
                                  {"c5", "reduce"},
                                  {"c6", "optimizer"},
                                  {"c7", "other"}})
    html += fmt::format("<span><i class=\"{}\"></i>{}</span> ", css, name);
  return element("p", "legend", html) + "\n";
}

double end_of(const std::vector<Span>& spans) {
  double end = 0;
  for (const Span& span : spans) end = std::max(end, span.end_s);
  return end;
}

// The longest where there are too many.
std::vector<Span> shown(std::vector<Span> spans) {
  if (spans.size() <= kMostSpans) return spans;
  std::ranges::sort(spans, std::greater{}, [](const Span& s) { return s.end_s - s.start_s; });
  spans.resize(kMostSpans);
  return spans;
}

std::string rectangle(const Span& span, double top, double most) {
  const double left = kWidth * span.start_s / most;
  const double width = std::max(0.4, kWidth * (span.end_s - span.start_s) / most);
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{}: "
      "{}</title></rect>\n",
      colour_of(span.kind), left, top, width, kLaneHeight - 2, escaped(span.action),
      escaped(supervise::short_duration(span.end_s - span.start_s)));
}

// A row a lane that is used.
std::string lanes(const std::string& name, const std::vector<Span>& all, double most) {
  std::map<int, double> tops;
  for (const Span& span : all) tops.emplace(span.lane, 0);
  double height = 0;
  std::string words;
  for (auto& [lane, top] : tops) {
    top = height;
    height += kLaneHeight;
    words += element("span", "", program::to_string(static_cast<program::Lane>(lane)));
  }
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" style=\"height:{}px\">\n", kWidth,
      height, height);
  for (const Span& span : shown(all)) svg += rectangle(span, tops[span.lane], most);
  const std::string title =
      escaped(fmt::format("{}: {}", name, supervise::short_duration(end_of(all))));
  return element("h4", "", title) +
         element("div", "lanes", element("div", "words", words) + svg + "</svg>") + "\n";
}

std::map<std::string, double> seconds_by_kind(const std::vector<Span>& spans) {
  std::map<std::string, double> seconds;
  for (const Span& span : spans) seconds[span.kind] += span.end_s - span.start_s;
  return seconds;
}

std::string kinds(const Story& story) {
  const auto measured = seconds_by_kind(story.traced.ranks.front().spans);
  const auto predicted = seconds_by_kind(story.predicted.spans);
  std::vector<Pair> pairs;
  for (const auto& [kind, seconds] : measured) {
    const auto found = predicted.find(kind);
    const double expected =
        found == predicted.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
    pairs.push_back({kind, expected, seconds});
  }
  std::ranges::sort(pairs, std::greater{}, &Pair::measured);
  const bool any = !predicted.empty();
  return element("h4", "", any ? "Rank 0 by kind, predicted over measured" : "Rank 0 by kind") +
         bars(pairs, supervise::short_duration);
}

}  // namespace

std::string timeline(const Story& story) {
  const TracedStep& traced = story.traced;
  std::string unreadable;
  if (traced.unreadable > 0)
    unreadable = note(fmt::format("{} files of trace/ cannot be read.", traced.unreadable));
  if (traced.ranks.empty())
    return unreadable +
           note(traced.attempt > 0
                    ? "trace/ holds no whole step."
                    : "No step was traced: log.trace_steps was 0. With log.trace_steps "
                      "at 3, say, the first 3 steps of each attempt are shown here.");
  double most = end_of(story.predicted.spans);
  for (const auto& rank : traced.ranks) most = std::max(most, end_of(rank.spans));
  if (!(most > 0)) most = 1;
  std::string html = note(fmt::format(
      "Step {} of attempt {}; the first step of an attempt is slower than others. Point at an "
      "action to read it.",
      traced.step, traced.attempt));
  html += legend();
  std::string rows;
  if (!story.predicted.spans.empty())
    rows += lanes("Rank 0, predicted", story.predicted.spans, most);
  for (const auto& rank : traced.ranks)
    rows += lanes(fmt::format("Rank {}, measured", rank.rank), rank.spans, most);
  html += element("div", "wide", element("div", "tracks", rows)) + "\n";
  html += note(story.predicted.spans.empty() ? "No predicted actions: " + story.predicted.missing
                                             : "Predicted with " + story.predicted.figures);
  return unreadable + html + kinds(story);
}

}  // namespace ptrain::report
