#include "launcher/supervise/measurements.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/program/memory.h"
#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {

namespace {

using program::MemoryClass;

constexpr std::size_t kMostSteps = 512;

// Those that are predicted to the byte.
constexpr MemoryClass kExactClasses[] = {MemoryClass::kParameters, MemoryClass::kGradients,
                                         MemoryClass::kOptimizer,  MemoryClass::kGather,
                                         MemoryClass::kStash,      MemoryClass::kCheckpoint};

// Not by what else the machine did during the run: that only makes steps slower.
constexpr const char* kTooFast =
    "  faster than the plan's figures allow (they set MFU too): if they were measured while this "
    "machine was busy, `ptrain plan RECIPE --probe` measures it again";

void push_limited(std::vector<double>& values, double value) {
  values.push_back(value);
  if (values.size() > kMostSteps) values.erase(values.begin());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string row(std::string_view name, double predicted, double measured,
                std::string (*text)(double)) {
  std::string difference = "not predicted";
  if (predicted == measured)
    difference = "exact";
  else if (predicted > 0)
    difference = fmt::format("{:+.1f} %", 100 * (measured / predicted - 1));
  return fmt::format("  {:<16}{:>12}{:>12}   {}", name, text(predicted), text(measured),
                     difference);
}

}  // namespace

Measurements::OfShape& Measurements::of(const std::string& name) {
  const auto found = std::ranges::find(shapes_, name, &OfShape::name);
  if (found != shapes_.end()) return *found;
  shapes_.emplace_back().name = name;
  return shapes_.back();
}

void Measurements::step(const run::StepDone& done) {
  OfShape& shape = of(done.shape);
  push_limited(shape.step_s, done.step_s);
  push_limited(shape.tokens_per_s, done.tokens_per_s);
  shape.resident_bytes = std::max(shape.resident_bytes, done.bytes_peak);
}

void Measurements::shape_finished(const nlohmann::json& fields) {
  const auto name = fields.find("shape"), bytes = fields.find("bytes");
  if (name == fields.end() || !name->is_string()) return;
  if (bytes != fields.end() && bytes->is_object()) of(name->get<std::string>()).bytes = *bytes;
}

std::vector<std::string> Measurements::beside(const run::Plan& plan) const {
  std::vector<std::string> lines;
  for (const auto& measured : shapes_) {
    const auto planned = std::ranges::find(plan.shapes, measured.name, &run::ShapePlan::name);
    if (measured.step_s.empty() || planned == plan.shapes.end()) continue;
    const run::Prediction& predicted = planned->predicted;
    lines.push_back(
        fmt::format("  {:<16}{:>12}{:>12}", "shape " + measured.name, "predicted", "measured"));
    lines.push_back(row("step time", predicted.step_s, median(measured.step_s), short_duration));
    lines.push_back(
        row("tokens/s", predicted.tokens_per_s, median(measured.tokens_per_s), short_number));
    if (predicted.classes.empty()) continue;
    const auto& bytes = predicted.classes.front().bytes;  // rank 0 is of the first class
    for (const MemoryClass one : kExactClasses) {
      const std::string name(program::to_string(one));
      const auto found = measured.bytes.find(name);
      if (found != measured.bytes.end() && found->is_number())
        lines.push_back(row(name, static_cast<double>(bytes[static_cast<std::size_t>(one)].value),
                            found->get<double>(), short_bytes));
    }
    lines.push_back(row("memory of a rank", static_cast<double>(program::total_bytes(bytes)),
                        static_cast<double>(measured.resident_bytes), short_bytes));
    if (median(measured.step_s) < predicted.low_s) lines.emplace_back(kTooFast);
  }
  return lines;
}

}  // namespace ptrain::supervise
