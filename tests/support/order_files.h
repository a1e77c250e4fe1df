#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule/schedule.h"

// Reads tests/fixtures/schedule: orders of pipeline schedules and their totals, as others give
// them.
namespace ptrain::test {

// The lines of a file by the names of its columns. No cell holds a comma.
inline std::vector<std::map<std::string, std::string>> read_table(const std::string& file) {
  const char* root = std::getenv("PTRAIN_SOURCE_DIR");
  const std::string path =
      std::string(root == nullptr ? "." : root) + "/tests/fixtures/schedule/" + file;
  std::ifstream lines(path);
  if (!lines) throw std::runtime_error("cannot read " + path + ": set PTRAIN_SOURCE_DIR");
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(cell);
    if (names.empty()) {
      names = values;
      continue;
    }
    values.resize(std::max(values.size(), names.size()));
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = values[i];
  }
  return rows;
}

// A file's order. A stage that lies on two ranks has two copies of the weights: copy 1 is that of
// the rank further down at stage 0. A task of roundpipe_* is the F of a stage; S, a vocabulary
// pass, is left out.
inline schedule::Schedule read_order(const std::string& file) {
  schedule::Schedule order;
  std::map<std::pair<int, std::string>, int> pairs;
  std::map<int, std::set<int>> starts;  // micro-batches by the rank of their first stage
  for (const auto& row : read_table(file)) {
    const int rank = std::stoi(row.at("rank"));
    schedule::Cell cell;
    const bool task = row.contains("task");
    const auto work = std::string("FBIW").find(task ? "F" : row.at("action"));
    if (work == std::string::npos) continue;
    cell.work = static_cast<schedule::Work>(work);
    cell.stage = std::stoi(row.at(task ? "task" : "stage"));
    cell.micro_batch = std::stoi(row.at("microbatch"));
    if (row.contains("slice")) cell.slice = std::stoi(row.at("slice"));
    if (row.contains("overlap_group") && !row.at("overlap_group").empty())
      cell.pair = pairs.try_emplace({rank, row.at("overlap_group")}, pairs.size()).first->second;
    if (cell.stage == 0) starts[rank].insert(cell.micro_batch);
    order.ranks.resize(std::max(order.ranks.size(), static_cast<std::size_t>(rank) + 1));
    order.ranks[static_cast<std::size_t>(rank)].push_back(cell);
    order.num_stages = std::max(order.num_stages, cell.stage + 1);
    order.num_micro_batches = std::max(order.num_micro_batches, cell.micro_batch + 1);
    order.num_slices = std::max(order.num_slices, cell.slice + 1);
  }
  if (starts.size() == 2)
    for (auto& cells : order.ranks)
      for (auto& cell : cells)
        cell.copy = starts.rbegin()->second.contains(cell.micro_batch) ? 1 : 0;
  return order;
}

// One line a rank. Pairs are marked, not numbered.
inline std::string order_text(const schedule::Schedule& order) {
  std::string text;
  for (const auto& cells : order.ranks) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool paired = i > 0 && cells[i].pair >= 0 && cells[i].pair == cells[i - 1].pair;
      text += paired ? '+' : ' ';
      text += to_text(cells[i]);
    }
    text += "\n";
  }
  return text;
}

// What a file's order takes under one set of costs: a line of summary.csv.
struct OrderTotals {
  std::string schedule;
  std::string file;
  schedule::Problem problem;
  double makespan = 0;
  double busy_max = 0;
  std::string peaks;  // a rank
  std::string note;
};

inline std::vector<OrderTotals> read_totals() {
  const auto number = [](const std::string& text) { return text.empty() ? 0 : std::stod(text); };
  std::vector<OrderTotals> totals;
  for (const auto& row : read_table("summary.csv")) {
    OrderTotals& line = totals.emplace_back();
    line.schedule = row.at("schedule");
    line.file = row.at("file");
    line.problem.num_ranks = std::stoi(row.at("p"));
    line.problem.num_virtual = std::stoi(row.at("v"));
    line.problem.num_micro_batches = std::stoi(row.at("m"));
    line.problem.costs = {.forward = number(row.at("TF")),
                          .backward_input = number(row.at("TB")),
                          .backward_weight = number(row.at("TW")),
                          .communication = number(row.at("Tcomm")),
                          .overlapped = number(row.at("TFB"))};
    line.makespan = number(row.at("makespan"));
    line.busy_max = number(row.at("busy_max"));
    line.peaks = row.at("peak_act_per_rank");
    line.note = row.at("note");
  }
  return totals;
}

}  // namespace ptrain::test
