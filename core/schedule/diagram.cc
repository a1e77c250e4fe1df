#include "core/schedule/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ptrain::schedule {
namespace {

bool one_stage_a_rank(const Schedule& schedule) {
  return std::ranges::all_of(schedule.ranks, [](const auto& cells) {
    return std::ranges::all_of(cells,
                               [&](const Cell& cell) { return cell.stage == cells.front().stage; });
  });
}

// The cells of one place of a list, "F7" or "2F7"; a pair is "F7+B3".
std::string label_of(std::span<const Cell> cells, bool with_stage) {
  std::string label;
  for (const Cell& cell : cells) {
    if (!label.empty()) label += '+';
    const std::string text = to_text(cell);
    label += with_stage ? text : text.substr(text.find(letter_of(cell.work)));
  }
  return label;
}

// Lines that start with the rank; `columns` a unit of time.
class Lines {
 public:
  Lines(const Schedule& schedule, const Simulation& simulation)
      : schedule_(schedule), simulation_(simulation), with_stage_(!one_stage_a_rank(schedule)) {}

  // Columns a unit of time that give every cell room for its label and a space.
  double columns_for_labels() const {
    double columns = 0;
    for_each([&](int, std::span<const Cell> cells, const Span& span) {
      const auto width = static_cast<double>(label_of(cells, with_stage_).size() + 1);
      if (span.end > span.start) columns = std::max(columns, width / (span.end - span.start));
    });
    return columns;
  }

  std::string labelled(double columns) const {
    std::vector<std::string> lines(schedule_.ranks.size());
    for_each([&](int rank, std::span<const Cell> cells, const Span& span) {
      std::string& line = lines[static_cast<std::size_t>(rank)];
      line.resize(std::max(line.size(), column_of(span.start, columns)), ' ');
      line += label_of(cells, with_stage_);
      line.resize(std::max(line.size(), column_of(span.end, columns)), ' ');
    });
    return joined(std::move(lines));
  }

  std::string lettered(double columns, int width) const {
    std::vector<std::string> lines(schedule_.ranks.size(),
                                   std::string(static_cast<std::size_t>(width), '.'));
    for_each([&](int rank, std::span<const Cell> cells, const Span& span) {
      std::string& line = lines[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < line.size(); ++i) {
        const double middle = (static_cast<double>(i) + 0.5) / columns;
        if (middle >= span.start && middle < span.end)
          line[i] = letter_of(cells[cells.size() > 1 ? i % 2 : 0].work);
      }
    });
    return joined(std::move(lines));
  }

 private:
  template <class Each>
  void for_each(Each each) const {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const auto& cells = schedule_.ranks[rank];
      for (std::size_t i = 0; i < cells.size(); i += together(cells, i).size())
        each(static_cast<int>(rank), together(cells, i), simulation_.ranks[rank].spans[i]);
    }
  }

  static std::size_t column_of(double time, double columns) {
    return static_cast<std::size_t>(std::lround(time * columns));
  }

  static std::string joined(std::vector<std::string> lines) {
    std::string text;
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      std::string& line = lines[rank];
      line.resize(line.find_last_not_of(' ') + 1);
      text += fmt::format("{:>4}  {}\n", rank, line);
    }
    return text;
  }

  const Schedule& schedule_;
  const Simulation& simulation_;
  bool with_stage_;
};

}  // namespace

std::string diagram(const Schedule& schedule, const Simulation& simulation, int most_columns) {
  const Lines lines(schedule, simulation);
  const double columns = lines.columns_for_labels();
  if (columns * simulation.makespan <= most_columns) return lines.labelled(columns);
  return lines.lettered(most_columns / simulation.makespan, most_columns);
}

}  // namespace ptrain::schedule
