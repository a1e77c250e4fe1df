#include "core/recipe/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ptrain::recipe {
namespace {

template <class Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view path) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.path == path; });
  return found == rows.end() ? nullptr : &*found;
}

// The number as a person writes it: whole numbers with all digits.
std::string plain(double value) {
  return value < 1e15 && value == static_cast<double>(static_cast<std::int64_t>(value))
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

std::string range_text(const Field& field) {
  const Range& range = field.range;
  if (range.least == range.most) return plain(range.least);
  const std::string least = plain(range.least);
  const std::string most = range.most > 1e18 ? "2^63 - 1" : plain(range.most);
  if (!range.open_least && !range.open_most) return fmt::format("{} to {}", least, most);
  return fmt::format("{} {}, {} {}", range.open_least ? "above" : "at least", least,
                     range.open_most ? "below" : "at most", most);
}

}  // namespace

const Field* find_field(std::string_view path) { return find_row(fields(), path); }
const List* find_list(std::string_view path) { return find_row(lists(), path); }
const Reserved* find_reserved(std::string_view path) { return find_row(reserved_keys(), path); }
const AutoSection* find_auto_section(std::string_view path) {
  return find_row(auto_sections(), path);
}

const AutoSection* auto_section_around(std::string_view path) {
  for (std::size_t dot = path.rfind('.'); dot != std::string_view::npos; dot = path.rfind('.')) {
    path = path.substr(0, dot);
    if (const AutoSection* section = find_auto_section(path)) return section;
  }
  return nullptr;
}

std::vector<std::string> child_names(std::string_view path) {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    std::string_view rest = field.path;
    if (!path.empty()) {
      if (!rest.starts_with(path) || rest.size() == path.size() || rest[path.size()] != '.')
        continue;
      rest.remove_prefix(path.size() + 1);
    }
    const std::string name(rest.substr(0, rest.find_first_of(".[")));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string allowed_values(const Field& field) {
  std::string text;
  switch (field.type) {
    case FieldType::kText:
      return "";
    case FieldType::kBoolean:
      return "true, false";
    case FieldType::kChoice:
      return fmt::format("{}", fmt::join(field.choices, ", "));
    case FieldType::kInteger:
    case FieldType::kNumber:
      text = range_text(field);
      break;
  }
  const std::string word = field.zero_word + field.absent_word;
  return word.empty() ? text : word + ", " + text;
}

std::string path_of_entry(std::string_view path, std::size_t entry) {
  std::string text(path);
  const std::size_t bracket = text.find("[]");
  if (bracket != std::string::npos) text.replace(bracket, 2, fmt::format(".{}", entry));
  return text;
}

}  // namespace ptrain::recipe
