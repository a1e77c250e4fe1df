#include "core/recipe/slurm.h"

#include <charconv>
#include <string_view>

namespace ptrain::recipe {

std::optional<int> num_tasks(const std::string& array) {
  if (array.empty()) return 0;
  constexpr std::string_view kFirst = "1-", kOneAtATime = "%1";
  std::string_view text = array;
  if (text.starts_with(kFirst) && text.ends_with(kOneAtATime)) {
    text.remove_prefix(kFirst.size());
    text.remove_suffix(kOneAtATime.size());
  }
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

}  // namespace ptrain::recipe
