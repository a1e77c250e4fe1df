#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/schedule/diagram.h"

namespace ptrain::schedule {
namespace {

constexpr double kLeft = 70;
constexpr double kTop = 46;
constexpr double kRow = 34;
constexpr double kBar = 30;
constexpr double kMark = 2;          // under cells that are not of the rank's first stage
constexpr double kLeastCell = 22;    // pixels of the shortest cell, so that its number fits
constexpr double kMostWidth = 8000;  // pixels; cells too narrow for numbers have none

struct Style {
  std::string_view name;
  std::string_view colour;
};

// Dark text is legible on each, and greys differ.
Style style_of(Work work) {
  constexpr std::array<Style, 4> kStyles = {{{"F forward", "#9ecae1"},
                                             {"B backward", "#74c476"},
                                             {"I input gradient", "#c7e9c0"},
                                             {"W weight gradient", "#fdae6b"}}};
  return kStyles[static_cast<std::size_t>(work)];
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'')
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

std::string box(const Box& at, std::string_view colour, std::string_view hover) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"#444\" stroke-width=\"0.6\"><title>{}</title></rect>\n",
      at.x, at.y, at.width, at.height, colour, escaped(hover));
}

// A cell with the number of its micro-batch; the halves of a pair lie above each other.
std::string cell_svg(const Cell& cell, const Span& span, const Box& at, bool first_chunk) {
  const std::string hover = fmt::format("{}: {:g} to {:g}", to_text(cell), span.start, span.end);
  std::string svg = box(at, style_of(cell.work).colour, hover);
  if (!first_chunk)
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#444\"/>\n",
        at.x, at.y + at.height - kMark, at.width, kMark);
  const std::string number = std::to_string(cell.micro_batch);
  if (at.width >= 7.0 * static_cast<double>(number.size()) && at.height >= 11)
    svg += text_at(at.x + at.width / 2, at.y + at.height / 2 + 4, "middle", number);
  return svg;
}

std::string rank_svg(const std::vector<Cell>& cells, const std::vector<Span>& spans, double y,
                     double scale) {
  std::string svg;
  for (std::size_t i = 0; i < cells.size(); i += together(cells, i).size()) {
    const auto now = together(cells, i);
    const double height = kBar / static_cast<double>(now.size());
    double top = y;
    for (const Cell& cell : now) {
      const Box at{kLeft + spans[i].start * scale, top, (spans[i].end - spans[i].start) * scale,
                   height};
      svg += cell_svg(cell, spans[i], at, cell.stage == cells.front().stage);
      top += height;
    }
  }
  return svg;
}

double scale_of(const Simulation& simulation) {
  double shortest = simulation.makespan;
  for (const auto& rank : simulation.ranks)
    for (const Span& span : rank.spans)
      if (span.end > span.start) shortest = std::min(shortest, span.end - span.start);
  return std::min(kLeastCell / shortest, kMostWidth / simulation.makespan);
}

std::string legend() {
  std::string svg;
  double x = kLeft;
  for (const Work work :
       {Work::kForward, Work::kBackward, Work::kBackwardInput, Work::kBackwardWeight}) {
    const auto [name, colour] = style_of(work);
    svg += box({x, 26, 12, 12}, colour, name) + text_at(x + 16, 36, "start", name);
    x += 130;
  }
  return svg + text_at(x, 36, "start", "underlined: another stage than the rank's first");
}

}  // namespace

std::string to_svg(std::string_view name, const Schedule& schedule, const Simulation& simulation) {
  const double scale = scale_of(simulation);
  const double width = std::max(kLeft + simulation.makespan * scale + 20, 880.0);
  const double height = kTop + kRow * schedule.num_ranks() + 10;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  svg += text_at(kLeft, 16, "start",
                 fmt::format("{}: makespan {:g}, bubble {:.1f} %", name, simulation.makespan,
                             100 * simulation.bubble));
  svg += legend();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const double y = kTop + kRow * static_cast<double>(rank);
    svg += text_at(kLeft - 8, y + kBar / 2 + 4, "end", fmt::format("rank {}", rank));
    svg += rank_svg(schedule.ranks[rank], simulation.ranks[rank].spans, y, scale);
  }
  return svg + "</svg>\n";
}

}  // namespace ptrain::schedule
