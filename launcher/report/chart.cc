#include "launcher/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/divide.h"
#include "launcher/report/html.h"

namespace ptrain::report {

namespace {

// The SVG is stretched to the size of its box, so its own units are parts of that.
constexpr double kWidth = 1000, kHeight = 300;
constexpr std::size_t kMostPoints = 1000;  // of a line: more than a screen is wide
constexpr int kMostTicks = 5;

struct Range {
  double low = 0, high = 1;
  double part(double value) const { return (value - low) / (high - low); }
};

bool is_point(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// From the least to the greatest of one coordinate; wider where they are the same.
Range range_of(const Chart& chart, double Point::*coordinate, bool from_zero) {
  Range range{INFINITY, -INFINITY};
  for (const Series& series : chart.series)
    for (const Point& point : series.points) {
      if (!is_point(point)) continue;
      range.low = std::min(range.low, point.*coordinate);
      range.high = std::max(range.high, point.*coordinate);
    }
  if (from_zero) range.low = std::min(range.low, 0.0);
  if (range.low < range.high) return range;
  const double room = range.high == 0 ? 1 : std::abs(range.high) / 2;
  return {range.low - (from_zero ? 0 : room), range.high + room};
}

// 1, 2 or 5 times a power of ten, so that at most kMostTicks fit.
double tick_distance(const Range& range) {
  const double rough = (range.high - range.low) / kMostTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

std::vector<double> ticks_of(const Range& range) {
  std::vector<double> ticks;
  const double distance = tick_distance(range), first = std::ceil(range.low / distance);
  for (int i = 0; i <= kMostTicks; ++i) {
    const double tick = (first + i) * distance;
    if (tick <= range.high) ticks.push_back(tick);
  }
  return ticks;
}

// Of each run of points the lowest and the highest, so that spikes stay.
std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<Point> kept;
  const std::size_t run = divide_up(2 * points.size(), kMostPoints);
  for (std::size_t begin = 0; begin < points.size(); begin += run) {
    const std::size_t end = std::min(points.size(), begin + run);
    std::size_t low = begin, high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_point(points[low]) || points[i].y < points[low].y) low = i;
      if (!is_point(points[high]) || points[i].y > points[high].y) high = i;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
  }
  return kept;
}

// A dot is a stroke of no length: its round ends keep their shape when the SVG is stretched.
std::string path_of(const Series& series, const Range& xs, const Range& ys) {
  std::string path;
  bool is_open = false;
  for (const Point& point : thinned(series.points)) {
    if (!is_point(point)) {
      is_open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", is_open ? "L" : "M", kWidth * xs.part(point.x),
                        kHeight * (1 - ys.part(point.y)));
    if (series.dots || !is_open) path += "h0";
    is_open = !series.dots;
  }
  return fmt::format("<path class=\"{} {}\" d=\"{}\"/>\n", series.dots ? "dots" : "line",
                     escaped(series.css), path);
}

std::string lines_of(const Chart& chart, const Range& xs, const Range& ys) {
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\n",
                  kWidth, kHeight);
  for (const double tick : ticks_of(ys))
    svg += fmt::format("<path class=\"grid\" d=\"M0 {:.1f}H{}\"/>\n", kHeight * (1 - ys.part(tick)),
                       kWidth);
  for (const Mark& mark : chart.marks)
    svg += fmt::format("<path class=\"mark\" d=\"M{:.1f} 0V{}\"/>\n", kWidth * xs.part(mark.x),
                       kHeight);
  for (const Series& series : chart.series) svg += path_of(series, xs, ys);
  return svg + "</svg>\n";
}

std::string words_of(const Chart& chart, const Range& xs, const Range& ys) {
  std::string html;
  for (const double tick : ticks_of(ys))
    html += fmt::format("<span class=\"y\" style=\"top:{:.2f}%\">{}</span>",
                        100 * (1 - ys.part(tick)), escaped(chart.text(tick)));
  for (const double tick : ticks_of(xs))
    html += fmt::format("<span class=\"x\" style=\"left:{:.2f}%\">{:.10g}</span>",
                        100 * xs.part(tick), tick);
  for (const Mark& mark : chart.marks)
    html += fmt::format("<span class=\"at\" style=\"left:{:.2f}%\">{}</span>",
                        100 * xs.part(mark.x), escaped(mark.name));
  return html;
}

std::string legend_of(const Chart& chart) {
  std::string html;
  for (const Series& series : chart.series) {
    const auto last = std::find_if(series.points.rbegin(), series.points.rend(), is_point);
    if (last == series.points.rend()) continue;
    html += fmt::format("<span><i class=\"{}\"></i>{}: {} at the end</span> ", escaped(series.css),
                        escaped(series.name), escaped(chart.text(last->y)));
  }
  return element("p", "legend", html) + "\n";
}

}  // namespace

std::string to_html(const Chart& chart) {
  std::string inside =
      element("h3", "",
              escaped(chart.title) + (chart.unit.empty() ? "" : " (" + escaped(chart.unit) + ")"));
  const bool any = std::ranges::any_of(chart.series, [](const Series& series) {
    return std::ranges::any_of(series.points, is_point);
  });
  if (!any) return element("figure", "", inside + note("Nothing of it was written down."));
  const Range xs = range_of(chart, &Point::x, false);
  const Range ys = range_of(chart, &Point::y, chart.from_zero);
  inside += legend_of(chart) +
            element("div", "chart", lines_of(chart, xs, ys) + words_of(chart, xs, ys)) +
            element("p", "axis", escaped(chart.x_name));
  return element("figure", "", inside) + "\n";
}

}  // namespace ptrain::report
