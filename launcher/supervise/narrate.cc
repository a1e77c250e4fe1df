#include "launcher/supervise/narrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/supervise/event_fields.h"

namespace ptrain::supervise {

namespace {

using nlohmann::json;
using run::EventKind;

std::string counted(std::int64_t count, std::string_view what) {
  const std::string_view plural = what.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
}

std::int64_t step_of(const json& fields) {
  return static_cast<std::int64_t>(number_of(fields, "step"));
}

std::string shape_started(const json& fields) {
  std::string line = fmt::format("shape {}: steps {:.0f} to {:.0f} of {:.0f}",
                                 text_of(fields, "shape"), number_of(fields, "step") + 1,
                                 number_of(fields, "last_step"), number_of(fields, "total_steps"));
  const std::string checkpoint = text_of(fields, "checkpoint");
  if (!checkpoint.empty()) line += ", from " + checkpoint;
  if (const double cut = number_of(fields, "cut_documents"); cut > 0)
    line += fmt::format("; {:.0f} of {:.0f} documents are longer than a row and are cut", cut,
                        number_of(fields, "documents"));
  return line;
}

// The loss beside what a model that knows letters or pairs of letters alone would reach.
std::string validation_loss(const json& fields) {
  std::string line = fmt::format("step {}: validation loss {:.4f} nats a token", step_of(fields),
                                 number_of(fields, "loss"));
  if (fields.contains("bigram"))
    line += fmt::format(" (bigram entropy {:.4f}, unigram {:.4f})", number_of(fields, "bigram"),
                        number_of(fields, "unigram"));
  return line;
}

void add_sample(const std::string& sample, std::vector<std::string>& lines) {
  lines.push_back("a sample of what the model writes:");
  for (std::size_t start = 0; start <= sample.size();) {
    const auto end = std::min(sample.find('\n', start), sample.size());
    lines.push_back("  | " + sample.substr(start, end - start));
    start = end + 1;
  }
}

std::vector<std::string> validation(const json& fields) {
  std::vector<std::string> lines;
  if (fields.contains("loss")) lines.push_back(validation_loss(fields));
  const std::string sample = text_of(fields, "sample");
  if (!sample.empty()) add_sample(sample, lines);
  return lines;
}

}  // namespace

std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

std::string short_bytes(double bytes) {
  const double mebi = bytes / (1 << 20);
  if (mebi >= 1024) return fmt::format("{:.2f} GiB", mebi / 1024);
  return fmt::format("{:.{}f} MiB", mebi, mebi < 10 ? 2 : mebi < 100 ? 1 : 0);
}

std::string short_duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string in_words(const mesh::Layout& layout) {
  std::string text = counted(layout.num_ranks(), "rank");
  if (layout.shard > 1) {
    text += layout.dp > 1 ? fmt::format(" as {} replicas of {} shards", layout.dp, layout.shard)
                          : fmt::format(" as {} shards of one replica", layout.shard);
    text += fmt::format(" (ZeRO {})", layout.zero);
  } else if (layout.dp > 1) {
    text += ", each a replica";
  }
  text +=
      fmt::format("; a step is {} of {} a rank", counted(layout.num_micro_batches, "micro-batch"),
                  counted(layout.micro_batch, "row"));
  if (layout.recompute == recipe::Recompute::kSelective)
    text += ", norms and activations recomputed going backward";
  if (layout.recompute == recipe::Recompute::kFull) text += ", blocks recomputed going backward";
  if (layout.offload == recipe::Offload::kOptimizer) text += ", optimizer state offloaded";
  return text;
}

std::string layouts_text(const run::Plan& plan) {
  std::string text;
  for (const auto& shape : plan.shapes)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", shape.name,
                        mesh::to_string(shape.layout));
  return text;
}

std::vector<std::string> start_lines(const run::Plan& plan, const run::Directory& directory,
                                     bool by_hand) {
  std::vector<std::string> lines{"run directory: " + directory.root};
  for (const auto& shape : plan.shapes)
    lines.push_back(fmt::format("  shape {}: {}; {} a step, {} tokens/s expected", shape.name,
                                in_words(shape.layout), short_duration(shape.predicted.step_s),
                                short_number(shape.predicted.tokens_per_s)));
  if (by_hand)
    lines.push_back(
        "  Ctrl-C stops after the step with a checkpoint, twice at once; then `ptrain "
        "resume` continues");
  return lines;
}

std::vector<std::string> event_lines(EventKind kind, const json& fields) {
  switch (kind) {
    case EventKind::kShapeStarted:
      return {shape_started(fields)};
    case EventKind::kValidation:
      return validation(fields);
    case EventKind::kCheckpointPublished:
      return {fmt::format("step {}: checkpoint written", step_of(fields))};
    case EventKind::kCheckpointFailed:
      return {
          fmt::format("WARNING: step {}: the checkpoint could not be written: {}; "
                      "earlier ones, where there are any, are kept",
                      step_of(fields), text_of(fields, "message"))};
    case EventKind::kWarning:
      return {"warning: " + text_of(fields, "message")};
    case EventKind::kStopRequested:
      if (flag_of(fields, "now"))
        return {fmt::format("stopping now ({})", text_of(fields, "reason"))};
      return {
          fmt::format("stopping after this step with a checkpoint ({}); once more stops at once",
                      text_of(fields, "reason"))};
    default:
      return {};
  }
}

}  // namespace ptrain::supervise
