#include "core/parity/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/run/json_fields.h"

namespace ptrain::parity {

namespace {

using nlohmann::json;

constexpr int kMostPositions = 1 << 30;

Status bad(std::string_view what) {
  return fail(ExitCode::kUnusable, fmt::format("{}: not a record of a parity run", what),
              "run `ptrain run --parity` again, in a new directory");
}

// An infinity or NaN, which JSON has no number for, is null.
double number_of(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

bool is_choice(const json& item) {
  return item.is_array() && !item.empty() &&
         std::ranges::all_of(item, [](const json& one) { return one.is_number_integer(); });
}

bool is_sketch(const json& item) { return item.is_array() && item.size() == Sketch::kSums; }

bool is_record(const json& item) {
  if (!item.is_array() || item.size() != 7 || !item[3].is_string() || !is_sketch(item[4]) ||
      !item[5].is_array() || !is_sketch(item[6]))
    return false;
  for (int i = 0; i < 3; ++i)
    if (!item[i].is_number_integer() || item[i] < 0 || item[i] >= kMostPositions) return false;
  return item[0] < kNumStages && std::ranges::all_of(item[5], is_choice);
}

// A token, then its experts.
json json_of(const Choices& choices) {
  json out = json::array();
  for (const auto& [token, experts] : choices) {
    json& one = out.emplace_back(json::array({token}));
    for (const std::int32_t expert : experts) one.push_back(expert);
  }
  return out;
}

void read_sketch(const json& items, Sketch& sketch) {
  for (std::size_t i = 0; i < Sketch::kSums; ++i) sketch.sums[i] = number_of(items[i]);
}

void read_choices(const json& items, Choices& choices) {
  for (const json& one : items)
    choices[one[0].get<std::int64_t>()] = {std::next(one.begin()), one.end()};
}

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kRows:
      return "rows";
    case Stage::kInitial:
      return "initial values";
    case Stage::kRouting:
      return "choices of experts";
    case Stage::kForward:
      return "forward";
    case Stage::kLoss:
      return "loss";
    case Stage::kBackward:
      return "backward";
    case Stage::kGradient:
      return "gradients";
    case Stage::kStep:
      return "whole step";
    case Stage::kUpdated:
      return "after the update";
  }
  return "";
}

bool is_of_parameters(Stage stage) {
  return stage == Stage::kInitial || stage == Stage::kGradient || stage == Stage::kUpdated;
}

void add(Records& records, const Records& more) {
  for (const auto& [key, recorded] : more) {
    Recorded& mine = records[key];
    mine.name = recorded.name;
    mine.sketch.add(recorded.sketch);
    mine.choices.insert(recorded.choices.begin(), recorded.choices.end());
    mine.weighed.add(recorded.weighed);
  }
}

std::string to_text(const Records& records) {
  json out = json::array();
  for (const auto& [key, recorded] : records)
    out.push_back({static_cast<int>(key.stage), key.position, key.part, recorded.name,
                   recorded.sketch.sums, json_of(recorded.choices), recorded.weighed.sums});
  return run::dump_line(out);
}

Result<Records> records_from_text(std::string_view text, std::string_view what) {
  PTRAIN_TRY(const json items, run::parse_json(text, what));
  if (!items.is_array()) PTRAIN_CHECK(bad(what));
  Records records;
  for (const json& item : items) {
    if (!is_record(item)) PTRAIN_CHECK(bad(what));
    Recorded& recorded =
        records[{static_cast<Stage>(item[0].get<int>()), item[1].get<int>(), item[2].get<int>()}];
    recorded.name = item[3].get<std::string>();
    read_sketch(item[4], recorded.sketch);
    read_choices(item[5], recorded.choices);
    read_sketch(item[6], recorded.weighed);
  }
  return records;
}

}  // namespace ptrain::parity
