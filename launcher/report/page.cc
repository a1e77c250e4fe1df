#include "launcher/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/model/optimizer.h"
#include "launcher/report/chart.h"
#include "launcher/report/compare.h"
#include "launcher/report/html.h"
#include "launcher/report/lines.h"
#include "launcher/report/style.h"
#include "launcher/report/timeline.h"
#include "launcher/supervise/narrate.h"

namespace ptrain::report {

namespace {

using run::EventKind;
using supervise::short_bytes;
using supervise::short_duration;
using supervise::short_number;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostEvents = 400;

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string list_of(const Facts& facts) {
  std::string inside;
  for (const auto& [name, value] : facts)
    inside +=
        element("div", "", element("dt", "", escaped(name)) + element("dd", "", escaped(value)));
  return element("dl", "facts", inside) + "\n";
}

std::string loss_text(double value) { return fmt::format("{:.4g}", value); }

Facts facts_of(const Story& story) {
  const run::Plan& plan = story.plan;
  std::int64_t num_steps = 0;
  for (const auto& shape : plan.recipe.shapes) num_steps += shape.steps;
  Facts facts{{"Run directory", std::filesystem::path(story.folder).filename().string()},
              {"Cluster", plan.cluster},
              {"Ranks", std::to_string(plan.ranks.size())},
              {"Family", plan.recipe.model.family}};
  if (const auto made = model::make_architecture(plan.recipe))
    facts.emplace_back("Parameters", short_number(static_cast<double>(made->num_parameters())));
  const std::int64_t step = story.steps.empty() ? 0 : story.steps.back().step;
  facts.emplace_back("Steps", fmt::format("{} of {}", step, num_steps));
  if (!story.steps.empty() && std::isfinite(story.steps.back().tokens_total))
    facts.emplace_back("Tokens trained on", short_number(story.steps.back().tokens_total));
  if (!story.events.empty()) {
    facts.emplace_back("First event", story.events.front().time);
    facts.emplace_back("Last event", story.events.back().time);
  }
  facts.emplace_back("Build", plan.build);
  return facts;
}

std::string layouts_of(const Story& story) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& shape : story.plan.shapes)
    rows.push_back({shape.name, mesh::to_string(shape.layout), supervise::in_words(shape.layout)});
  return table({"shape", "layout", "in words"}, rows);
}

std::vector<Point> points_of(const Story& story, double Step::*value) {
  std::vector<Point> points;
  for (const Step& step : story.steps)
    points.push_back({static_cast<double>(step.step), step.*value});
  return points;
}

std::vector<Point> validation_of(const Story& story) {
  std::vector<Point> points;
  for (const auto& event : story.events)
    if (event.kind == EventKind::kValidation)
      points.push_back({number_in(event.fields, "step"), number_in(event.fields, "loss")});
  return points;
}

// Where each shape but the first begins, as far as the run went.
std::vector<Mark> shape_marks(const Story& story) {
  std::vector<Mark> marks;
  std::int64_t first = 1;
  for (const auto& shape : story.plan.recipe.shapes) {
    const bool began = !story.steps.empty() && story.steps.back().step >= first;
    if (first > 1 && began) marks.push_back({static_cast<double>(first), shape.name});
    first += shape.steps;
  }
  return marks;
}

Chart chart_of(const Story& story, const char* title, const char* unit, double Step::*value) {
  Chart chart;
  chart.title = title;
  chart.unit = unit;
  chart.series.push_back({"training", "first", points_of(story, value), false});
  chart.marks = shape_marks(story);
  chart.from_zero = true;
  chart.text = short_number;
  return chart;
}

std::string charts(const Story& story) {
  Chart loss = chart_of(story, "Loss", "nats a token", &Step::loss);
  loss.series.push_back({"validation", "second", validation_of(story), true});
  loss.from_zero = false;
  loss.text = loss_text;
  Chart rate = chart_of(story, "Learning rate", "", &Step::learning_rate);
  rate.text = loss_text;
  Chart norm = chart_of(story, "Gradient norm", "before clipping", &Step::grad_norm);
  norm.text = loss_text;
  const Chart speed = chart_of(story, "Tokens/s", "target tokens, all ranks", &Step::tokens_per_s);
  std::string html;
  for (const Chart& chart : {loss, rate, speed, norm}) html += to_html(chart);
  if (story.damaged_metrics > 0)
    html +=
        note(fmt::format("{} damaged lines of metrics.jsonl are left out.", story.damaged_metrics));
  return section("Training", element("div", "grid2", html));
}

double median_of(const Story& story, const std::string& shape, double Step::*value) {
  std::vector<double> values;
  for (const Step& step : story.steps)
    if (step.shape == shape && step.*value >= 0) values.push_back(step.*value);
  std::ranges::sort(values);
  return values.empty() ? kUnknown : values[values.size() / 2];
}

double most_of(const Story& story, const std::string& shape, double Step::*value) {
  double most = kUnknown;
  for (const Step& step : story.steps)
    if (step.shape == shape && !(step.*value <= most)) most = step.*value;
  return most;
}

// Rank 0's peaks by class of the last time the shape finished; NaN where it never did.
double measured_bytes(const Story& story, const std::string& shape, program::MemoryClass of) {
  double bytes = kUnknown;
  for (const auto& event : story.events) {
    if (event.kind != EventKind::kShapeFinished || text_in(event.fields, "shape") != shape)
      continue;
    const auto found = event.fields.find("bytes");
    if (found != event.fields.end() && found->is_object())
      bytes = number_in(*found, std::string(program::to_string(of)).c_str());
  }
  return bytes;
}

std::vector<Pair> memory_of(const Story& story, const run::ShapePlan& shape) {
  std::vector<Pair> pairs;
  double sum = 0;
  for (int c = 0; c < program::kNumMemoryClasses; ++c) {
    const auto of = static_cast<program::MemoryClass>(c);
    const bool estimate = of >= program::MemoryClass::kTemporary;
    const auto bytes = static_cast<double>(
        shape.predicted.classes.front().bytes[static_cast<std::size_t>(c)].value);
    // What libraries hold is not counted on its own, but in the memory of the process below.
    const bool counted = of != program::MemoryClass::kRuntime;
    pairs.push_back({std::string(program::to_string(of)), bytes,
                     counted ? measured_bytes(story, shape.name, of) : kUnknown, 0, 0, estimate});
    sum += bytes;
  }
  pairs.push_back(
      {"all of a rank", sum, most_of(story, shape.name, &Step::bytes_peak), 0, 0, true});
  return pairs;
}

std::string shape_section(const Story& story, const run::ShapePlan& shape) {
  const run::Prediction& predicted = shape.predicted;
  const Pair time{"step time", predicted.step_s, median_of(story, shape.name, &Step::step_s),
                  predicted.low_s, predicted.high_s};
  const Pair speed{"tokens/s", predicted.tokens_per_s,
                   median_of(story, shape.name, &Step::tokens_per_s)};
  std::string html =
      "<p class=\"legend\"><span><i class=\"predicted\"></i>predicted</span> "
      "<span><i class=\"measured\"></i>measured (time and speed: median of its steps)</span></p>\n";
  html += element("h4", "", "Time") + bars({time}, short_duration) + bars({speed}, short_number);
  if (!predicted.classes.empty())
    html += element("h4", "", "Memory of rank 0, at the peak of each class") +
            bars(memory_of(story, shape), short_bytes);
  return section(fmt::format("Shape {}: predicted and measured", shape.name), html);
}

std::string text_of(const run::Event& event) {
  const auto lines = supervise::event_lines(event.kind, event.fields);
  if (!lines.empty()) return fmt::format("{}", fmt::join(lines, "\n"));
  using nlohmann::json;
  return event.fields.empty() ? ""
                              : event.fields.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string events_section(const Story& story) {
  const std::size_t count = std::min(story.events.size(), kMostEvents);
  std::vector<std::vector<std::string>> rows;
  for (auto event = story.events.end() - static_cast<std::ptrdiff_t>(count);
       event != story.events.end(); ++event)
    rows.push_back({event->time, std::to_string(event->attempt),
                    event->rank < 0 ? "" : std::to_string(event->rank),
                    std::string(run::to_string(event->kind)), text_of(*event)});
  std::string html;
  if (count < story.events.size())
    html += note(fmt::format("The last {} of {} events.", count, story.events.size()));
  if (story.damaged_events > 0)
    html +=
        note(fmt::format("{} damaged lines of events.jsonl are left out.", story.damaged_events));
  return section("Events", html + table({"time", "attempt", "rank", "event", ""}, rows));
}

}  // namespace

std::string page(const Story& story) {
  const std::string name = escaped(story.plan.recipe.name);
  std::string body = element("h1", "", name) + "\n";
  body += element("p", story.is_good ? "state good" : "state", escaped(story.state)) + "\n";
  body += section("Run", list_of(facts_of(story)) + layouts_of(story));
  body += charts(story);
  for (const auto& shape : story.plan.shapes) body += shape_section(story, shape);
  body += section("Timeline of a step", timeline(story));
  body += events_section(story);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</"
      "main>\n"
      "</body>\n</html>\n",
      name, kStyle, body);
}

}  // namespace ptrain::report
