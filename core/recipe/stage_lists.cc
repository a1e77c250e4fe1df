#include "core/recipe/stage_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/recipe/node.h"
#include "core/recipe/spelling.h"

namespace ptrain::recipe {
namespace {

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    entries.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

std::string unknown(const std::string& entry, const std::vector<std::string>& words) {
  const std::string near = nearest(entry, words);
  return fmt::format(
      "unknown value '{}' in the list; allowed: {} for each stage, separated by commas{}",
      shown(entry), fmt::join(words, ", "),
      near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

// The value of each entry by `named`, which knows `words`.
template <class T>
StageList<T> words_in(const std::string& text, const std::vector<std::string>& words,
                      std::optional<T> (*named)(std::string_view)) {
  std::vector<T> all;
  for (const std::string& entry : entries_of(text)) {
    const auto value = named(entry);
    if (!value) return tl::unexpected(unknown(entry, words));
    all.push_back(*value);
  }
  return all;
}

std::optional<DType> dtype_named(std::string_view word) {
  if (word == "fp32") return DType::kFloat32;
  if (word == "bf16") return DType::kBFloat16;
  return std::nullopt;
}

}  // namespace

StageList<int> stage_layers_in(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& entry : entries_of(text)) {
    int count = 0;
    const char* end = entry.data() + entry.size();
    const auto [next, error] = std::from_chars(entry.data(), end, count);
    if (error != std::errc() || next != end || count < 1)
      return tl::unexpected(
          fmt::format("'{}' in the list is no count of layers; allowed: whole numbers from 1 up, "
                      "separated by commas without spaces, such as 9,8,9",
                      shown(entry)));
    counts.push_back(count);
  }
  return counts;
}

StageList<Recompute> stage_recompute_in(const std::string& text) {
  return words_in<Recompute>(text, {"none", "selective", "full"}, recompute_named);
}

StageList<DType> stage_dtypes_in(const std::string& text) {
  return words_in<DType>(text, {"fp32", "bf16"}, dtype_named);
}

}  // namespace ptrain::recipe
