#include "core/schedule/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/schedule/transfers.h"

namespace ptrain::schedule {
namespace {

constexpr int kMostNumber = 999'999;
constexpr std::string_view kPair = "OVERLAP_F_B";
constexpr std::string_view kHint =
    "a cell is STAGE WORD MICRO-BATCH, like 0F0, 1B3, 2I1, 2W1 or 3SEND_F1; "
    "(0F7;7B3)OVERLAP_F_B; or nothing";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Takes what it reads off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool digits = !text.empty() && text.front() >= '0' && text.front() <= '9';
  if (!digits || error != std::errc{} || number > kMostNumber) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// ".1*0", ".1", "*0" or nothing.
bool take_extension(std::string_view& text, Cell& cell) {
  for (const auto& [mark, field] : {std::pair{'.', &Cell::slice}, {'*', &Cell::copy}}) {
    if (text.empty() || text.front() != mark) continue;
    text.remove_prefix(1);
    const auto number = take_number(text);
    if (!number) return false;
    cell.*field = *number;
  }
  return true;
}

std::optional<Step> step_named(std::string_view name) {
  for (const Work work :
       {Work::kForward, Work::kBackward, Work::kBackwardInput, Work::kBackwardWeight})
    if (name.size() == 1 && name.front() == letter_of(work))
      return Step{Word::kWork, {.work = work}};
  for (int word = 1; word <= static_cast<int>(Word::kReduceGradient); ++word)
    if (name == name_of(static_cast<Word>(word))) return Step{static_cast<Word>(word), {}};
  return std::nullopt;
}

// What a single cell says, or what is wrong with it.
tl::expected<Step, std::string> single_of(std::string_view text) {
  const auto stage = take_number(text);
  if (!stage) return tl::unexpected<std::string>("does not start with the number of a stage");
  const std::string_view name = text.substr(0, text.find_first_of("0123456789.* "));
  auto step = step_named(name);
  if (name == "BW")
    return tl::unexpected<std::string>(
        "BW is of an old form, in which B is the gradient of the input: write I for B and B for "
        "BW");
  if (!step) return tl::unexpected(fmt::format("there is no word \"{}\"", name));
  text.remove_prefix(name.size());
  step->cell.stage = *stage;
  if (step->word < Word::kUnshard) {
    const auto micro_batch = take_number(text);
    if (!micro_batch) return tl::unexpected(fmt::format("{} needs a micro-batch", name));
    step->cell.micro_batch = *micro_batch;
  }
  if (step->word == Word::kWork && !take_extension(text, step->cell))
    return tl::unexpected<std::string>("slice and copy are numbers, like 2F7.1*0");
  if (!text.empty()) return tl::unexpected(fmt::format("what is \"{}\" at its end?", text));
  return *step;
}

tl::expected<std::vector<Step>, std::string> pair_of(std::string_view text, int pair) {
  const auto close = text.find(')');
  if (close == std::string_view::npos) return tl::unexpected<std::string>("( has no )");
  if (text.substr(close + 1) != kPair)
    return tl::unexpected(fmt::format("a pair ends with {}", kPair));
  std::string_view inside = text.substr(1, close - 1);
  std::vector<Step> steps;
  while (!inside.empty()) {
    const auto end = std::min(inside.find(';'), inside.size());
    auto step = single_of(trimmed(inside.substr(0, end)));
    if (!step) return tl::unexpected(step.error());
    step->cell.pair = pair;
    if (step->word != Word::kWork) return tl::unexpected<std::string>("a pair is of work alone");
    steps.push_back(*step);
    inside.remove_prefix(std::min(end + 1, inside.size()));
  }
  if (steps.size() != 2) return tl::unexpected<std::string>("a pair has two halves");
  return steps;
}

tl::expected<std::vector<Step>, std::string> steps_of(std::string_view cell, int pair) {
  if (cell.empty()) return std::vector<Step>{};
  if (cell.front() == '(') return pair_of(cell, pair);
  return single_of(cell).map([](const Step& step) { return std::vector{step}; });
}

struct Row {
  std::string_view text;
  int rank = 0;
};

Result<std::vector<Step>> read_row(const Row& row, const std::string& file) {
  std::vector<Step> steps;
  int number = 1;
  int pairs = 0;
  for (std::size_t begin = 0; begin <= row.text.size(); ++number) {
    const auto end = std::min(row.text.find(',', begin), row.text.size());
    const std::string_view cell = trimmed(row.text.substr(begin, end - begin));
    auto read = steps_of(cell, pairs);
    if (!read)
      return fail(ExitCode::kUsage,
                  fmt::format("rank {}, cell {} ({}): {}", row.rank, number, cell.substr(0, 60),
                              read.error()),
                  std::string(kHint), {file, row.rank + 1, static_cast<int>(begin) + 1});
    if (read->size() > 1) ++pairs;
    steps.insert(steps.end(), read->begin(), read->end());
    begin = end + 1;
  }
  return steps;
}

std::string cell_text(const Cell& cell, bool with_slice, bool with_copy) {
  std::string text = fmt::format("{}{}{}", cell.stage, letter_of(cell.work), cell.micro_batch);
  if (with_slice) text += fmt::format(".{}", cell.slice);
  if (with_copy) text += fmt::format("*{}", cell.copy);
  return text;
}

}  // namespace

Result<Steps> steps_from_csv(std::string_view text, const std::string& file) {
  Steps steps;
  const auto last = text.find_last_not_of(" \t\r\n");
  text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  if (text.empty())
    return fail(ExitCode::kUsage, "the schedule is empty", std::string(kHint), {file, 1, 0});
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    PTRAIN_TRY(auto row, read_row({text.substr(0, end), static_cast<int>(steps.size())}, file));
    steps.push_back(std::move(row));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return steps;
}

Result<Schedule> from_csv(std::string_view text, const std::string& file) {
  PTRAIN_TRY(const Steps steps, steps_from_csv(text, file));
  if (!only_work(steps)) PTRAIN_CHECK(check_transfers(steps, Sends::kAsynchronous));
  return work_of(steps);
}

std::string to_csv(const Schedule& schedule) {
  const bool slices = schedule.num_slices > 1;
  const bool copies = num_copies(schedule) > 1;
  std::string text;
  for (const auto& cells : schedule.ranks) {
    for (std::size_t i = 0; i < cells.size();) {
      const auto now = together(cells, i);
      if (i > 0) text += ',';
      std::string inside;
      for (const Cell& cell : now) {
        if (!inside.empty()) inside += ';';
        inside += cell_text(cell, slices, copies);
      }
      text += now.size() == 1 ? inside : fmt::format("({}){}", inside, kPair);
      i += now.size();
    }
    text += '\n';
  }
  return text;
}

Result<std::string> to_torch_csv(const Schedule& schedule) {
  const int copies = num_copies(schedule);
  if (schedule.num_slices > 1 || copies > 1)
    return fail(ExitCode::kUsage,
                fmt::format("PyTorch has no words for {}",
                            copies > 1 ? "two copies of the weights" : "slices of micro-batches"),
                "ptrain's own form of CSV has them");
  return to_csv(schedule);
}

}  // namespace ptrain::schedule
