#include "launcher/cluster/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace ptrain::cluster {

namespace {

using Names = std::vector<std::string>;
constexpr std::size_t kMost = 65536;

// Takes the part before the next comma that is outside of brackets.
std::string_view take_one(std::string_view& text) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size() && (text[end] != ',' || depth > 0); ++end)
    depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
  const auto one = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return one;
}

std::optional<std::size_t> number_in(std::string_view digits) {
  constexpr std::size_t kMostDigits = 18;
  if (digits.size() > kMostDigits) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// "01-03" is 01, 02, 03; "7" is itself. False: neither.
bool add_range(std::string_view text, Names& numbers) {
  const auto dash = text.find('-');
  const auto from = text.substr(0, dash);
  const auto first = number_in(from);
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last || *last < *first ||
      *last - *first >= kMost - std::min(kMost, numbers.size()))
    return false;
  for (std::size_t i = *first; i <= *last; ++i)
    numbers.push_back(fmt::format("{:0{}}", i, from.size()));
  return true;
}

// One name with any number of brackets.
bool add_names(std::string_view text, Names& names) {
  Names found{""};
  while (!text.empty()) {
    const auto open = std::min(text.find('['), text.size());
    for (auto& name : found) name += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const auto close = text.find(']');
    if (close == std::string_view::npos) return false;
    Names numbers, longer;
    for (auto ranges = text.substr(1, close - 1); !ranges.empty();)
      if (!add_range(take_one(ranges), numbers)) return false;
    if (numbers.empty() || found.size() * numbers.size() > kMost) return false;
    for (const auto& name : found)
      for (const auto& number : numbers) longer.push_back(name + number);
    found = std::move(longer);
    text.remove_prefix(close + 1);
  }
  names.insert(names.end(), found.begin(), found.end());
  return !found.front().empty() && names.size() <= kMost;
}

}  // namespace

Result<Names> expand_hostlist(std::string_view text) {
  Names names;
  for (auto rest = text; !rest.empty();)
    if (!add_names(take_one(rest), names))
      return fail(ExitCode::kEnvironment,
                  fmt::format("Slurm's list of nodes is '{}', which is none", text),
                  "unset SLURM_JOB_ID to use this machine alone");
  return names;
}

}  // namespace ptrain::cluster
