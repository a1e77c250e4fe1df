#include "launcher/parity/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/run/json_fields.h"

namespace ptrain::parity {

namespace {

using nlohmann::json;

std::string short_text(double value, int digits) {
  return value == 0 ? "0" : fmt::format("{:.{}e}", value, digits);
}

std::string row(const StageResult& stage) {
  std::string line = fmt::format("  {:<18}{:>6}", to_string(stage.stage), stage.num_compared);
  if (stage.num_compared == 0) return line + "\n";
  line += fmt::format("{:>10}{:>12}{:>11}", stage.num_different,
                      short_text(stage.largest.relative, 1), short_text(stage.largest.allowed, 0));
  if (stage.largest.relative != 0) line += "  " + describe(stage.largest);
  return line + "\n";
}

std::string beyond(const char* what, const std::optional<Difference>& first) {
  if (!first) return "";
  return fmt::format("  first {}: {}: apart by {:.1e}, allowed {:.0e}\n", what, describe(*first),
                     first->relative, first->allowed);
}

json json_of(const std::optional<Difference>& difference) {
  if (!difference) return nullptr;
  return {{"stage", to_string(difference->key.stage)},
          {"name", difference->name},
          {"part", difference->key.part},
          {"detail", difference->detail},
          {"relative", run::number(difference->relative)},
          {"tolerance", run::number(difference->allowed)}};
}

json json_of(const StageResult& stage) {
  json out = {{"stage", to_string(stage.stage)},
              {"compared", stage.num_compared},
              {"different", stage.num_different},
              {"noise", stage.num_noise}};
  if (stage.num_compared > 0) out["largest"] = json_of(std::optional(stage.largest));
  return out;
}

}  // namespace

std::string to_text(const ShapeParity& shape) {
  std::string text = fmt::format(
      "shape {}: {} beside one rank, {} tokens\n"
      "  compared          tensors different     largest  tolerance  where\n",
      shape.name, mesh::to_string(shape.layout), shape.tokens);
  int num_noise = 0;
  for (const StageResult& stage : shape.comparison.stages) {
    text += row(stage);
    num_noise += stage.num_noise;
  }
  if (num_noise > 0)
    text += fmt::format(
        "  left out after the update: {} whose gradients are zero but for rounding\n", num_noise);
  if (shape.comparison.equal()) return text + "equal\n";
  return text + "DIFFERENT\n" + beyond("segment", shape.comparison.first_segment) +
         beyond("parameter", shape.comparison.first_parameter);
}

json to_json(const Outcome& outcome) {
  json shapes = json::array();
  for (const ShapeParity& shape : outcome.shapes) {
    json stages = json::array();
    for (const StageResult& stage : shape.comparison.stages) stages.push_back(json_of(stage));
    shapes.push_back({{"name", shape.name},
                      {"layout", mesh::to_string(shape.layout)},
                      {"tokens", shape.tokens},
                      {"equal", shape.comparison.equal()},
                      {"stages", std::move(stages)},
                      {"first_segment", json_of(shape.comparison.first_segment)},
                      {"first_parameter", json_of(shape.comparison.first_parameter)}});
  }
  return {{"code", static_cast<int>(outcome.verdict.code)},
          {"reason", outcome.verdict.reason},
          {"shapes", std::move(shapes)}};
}

}  // namespace ptrain::parity
