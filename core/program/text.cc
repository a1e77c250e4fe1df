#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>

#include "core/base/hash.h"
#include "core/program/action.h"

namespace ptrain::program {
namespace {

void write_number(std::string& out, const char* sigil, int value) {
  if (value >= 0) fmt::format_to(std::back_inserter(out), "{}{}", sigil, value);
}

void write_layers(std::string& out, const Action& action) {
  write_number(out, " l", action.layer_first);
  if (action.layer_last != action.layer_first) write_number(out, "-", action.layer_last);
  write_number(out, ".", action.segment);
}

void write_action(std::string& out, const Action& action) {
  fmt::format_to(std::back_inserter(out), "{} {} {}", action.id, to_string(action.lane),
                 to_string(action.kind));
  write_number(out, " g", action.group);
  write_number(out, " s", action.stage);
  write_layers(out, action);
  write_number(out, " m", action.micro_batch);
  write_number(out, ".", action.slice);
  write_number(out, " *", action.copy);
  for (const auto& [key, value] : action.attributes) {
    fmt::format_to(std::back_inserter(out), " {}={}", key, value);
  }
  if (!action.after.empty()) out += " <";
  for (int id : action.after) write_number(out, " ", id);
}

void write_actions(std::string& out, const Program& program) {
  for (const Action& action : program.actions) {
    write_action(out, action);
    out += '\n';
  }
}

std::optional<int> number_from(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// The value of an enum whose text is `name`; values count from 0 to `last`.
template <class Enum>
std::optional<Enum> enum_from(std::string_view name, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

std::string_view take_word(std::string_view& text, char separator = ' ') {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// "A", "A.B" after its sigil.
bool read_pair(std::string_view text, int& first, int& second) {
  const auto value = number_from(take_word(text, '.'));
  if (!value) return false;
  first = *value;
  if (text.empty()) return true;
  const auto part = number_from(text);
  if (part) second = *part;
  return part.has_value();
}

// "A", "A-B", each with an optional ".SEGMENT".
bool read_layers(std::string_view text, Action& action) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    if (!read_pair(text, action.layer_first, action.segment)) return false;
    action.layer_last = action.layer_first;
    return true;
  }
  const auto first = number_from(text.substr(0, dash));
  if (!first || !read_pair(text.substr(dash + 1), action.layer_last, action.segment)) return false;
  action.layer_first = *first;
  return action.layer_first < action.layer_last;
}

bool read_number(std::string_view text, int& value) {
  const auto number = number_from(text);
  if (number) value = *number;
  return number.has_value();
}

bool read_field(std::string_view word, Action& action) {
  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos && equals > 0 && equals + 1 < word.size()) {
    action.attributes.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    return true;
  }
  if (word.empty()) return false;
  const std::string_view rest = word.substr(1);
  switch (word[0]) {
    case 'g':
      return read_number(rest, action.group);
    case 's':
      return read_number(rest, action.stage);
    case 'l':
      return read_layers(rest, action);
    case 'm':
      return read_pair(rest, action.micro_batch, action.slice);
    case '*':
      return read_number(rest, action.copy);
    default:
      return false;
  }
}

bool read_after(std::string_view words, Action& action) {
  while (!words.empty()) {
    const auto id = number_from(take_word(words));
    if (!id) return false;
    action.after.push_back(*id);
  }
  return !action.after.empty();
}

tl::unexpected<Error> bad(std::string_view what, std::string_view text) {
  return fail(ExitCode::kUsage, fmt::format("{} in '{}'", what, text),
              "an action is: ID LANE KIND [gGROUP] [sSTAGE] [lA-B[.SEGMENT]] [mMB[.SLICE]] [*COPY] "
              "[key=value ...] [< ID ...]");
}

// Reads "KEY NUMBER" style headers: "program 1 rank 3/16 shape short".
Result<Program> header_from_text(std::string_view line) {
  Program program;
  std::string_view words = line;
  const bool named =
      take_word(words) == "program" && take_word(words) == "1" && take_word(words) == "rank";
  std::string_view place = take_word(words);
  const auto rank = number_from(take_word(place, '/'));
  const auto num_ranks = number_from(place);
  if (!named || !rank || !num_ranks || *rank >= *num_ranks || take_word(words) != "shape") {
    return fail(ExitCode::kUsage, fmt::format("line 1: '{}' is no header of a program", line),
                "it reads: program 1 rank RANK/RANKS shape NAME");
  }
  program.rank = *rank;
  program.num_ranks = *num_ranks;
  program.shape = words;
  return program;
}

tl::unexpected<Error> at_line(int number, Error error) {
  error.message = fmt::format("line {}: {}", number, error.message);
  error.place.line = number;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

std::string to_text(const Action& action) {
  std::string out;
  write_action(out, action);
  return out;
}

std::string to_text(const Program& program) {
  std::string out = fmt::format("program 1 rank {}/{} shape {}\n", program.rank, program.num_ranks,
                                program.shape);
  write_actions(out, program);
  return out;
}

Result<Action> action_from_text(std::string_view line) {
  Action action;
  std::string_view words = line;
  if (!read_number(take_word(words), action.id)) return bad("no id", line);
  const auto lane = enum_from(take_word(words), Lane::kCopyIn);
  if (!lane) return bad("unknown lane", line);
  const auto kind = enum_from(take_word(words), Kind::kOptimizer);
  if (!kind) return bad("unknown kind", line);
  action.lane = *lane;
  action.kind = *kind;
  while (!words.empty()) {
    const std::string_view word = take_word(words);
    if (word == "<") {
      if (!read_after(words, action)) return bad("no list of ids after '<'", line);
      break;
    }
    if (!read_field(word, action)) return bad(fmt::format("unreadable '{}'", word), line);
  }
  // One text for one action: fields twice, out of order or oddly spaced are refused.
  if (to_text(action) != line) return bad("fields out of order, repeated or oddly spaced", line);
  return action;
}

Result<Program> program_from_text(std::string_view text) {
  PTRAIN_TRY(Program program, header_from_text(take_word(text, '\n')));
  for (int number = 2; !text.empty(); ++number) {
    auto action = action_from_text(take_word(text, '\n'));
    if (!action) return at_line(number, std::move(action).error());
    const int id = static_cast<int>(program.actions.size());
    if (action->id != id) {
      auto message = fmt::format("id {} where {} is next", action->id, id);
      return at_line(number, {ExitCode::kUsage, std::move(message), "ids count from 0", {}});
    }
    program.actions.push_back(*std::move(action));
  }
  return program;
}

std::string class_hash(const Program& program) {
  std::string out = fmt::format("program 1 ranks {} shape {}\n", program.num_ranks, program.shape);
  write_actions(out, program);
  return hash128_hex(out);
}

}  // namespace ptrain::program
