#include "launcher/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "launcher/report/html.h"

namespace ptrain::report {

namespace {

double known(double value) { return std::isfinite(value) ? std::max(value, 0.0) : 0.0; }

std::string bar(std::string_view css, double value, double most, std::string (*text)(double)) {
  const std::string label =
      std::isfinite(value) ? escaped(text(value)) : std::string("not measured");
  return fmt::format(
      "<div class=\"bar\"><i class=\"{}\" style=\"width:{:.1f}%\"></i><span>{}</span></div>", css,
      most > 0 ? 65 * known(value) / most : 0, label);  // the rest is for the number
}

}  // namespace

std::string difference_of(const Pair& pair) {
  if (!std::isfinite(pair.predicted) || !std::isfinite(pair.measured)) return "";
  if (pair.predicted == pair.measured) return "exact";
  if (pair.predicted <= 0) return "not predicted";
  return fmt::format("{:+.1f} %", 100 * (pair.measured / pair.predicted - 1));
}

std::string bars(const std::vector<Pair>& pairs, std::string (*text)(double)) {
  double most = 0;
  for (const Pair& pair : pairs)
    most = std::max({most, known(pair.predicted), known(pair.measured)});
  std::string html;
  for (const Pair& pair : pairs) {
    std::string about = difference_of(pair);
    if (pair.estimate && pair.predicted != pair.measured)
      about += about.empty() ? "an estimate" : " of an estimate";
    if (pair.high > 0 && std::isfinite(pair.high))
      about += fmt::format(" (expected {} to {})", text(pair.low), text(pair.high));
    html += element("div", "name", escaped(pair.name));
    html += element(
        "div", "pair",
        bar("predicted", pair.predicted, most, text) + bar("measured", pair.measured, most, text));
    html += element("div", "about", escaped(about)) + "\n";
  }
  return element("div", "bars", html) + "\n";
}

}  // namespace ptrain::report
