#include <array>
#include <utility>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {
namespace {

constexpr std::array<std::pair<std::string_view, Recompute>, 3> kWords{
    {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}}};

}  // namespace

std::string_view to_string(Recompute recompute) {
  for (const auto& [word, value] : kWords)
    if (value == recompute) return word;
  return "";
}

std::optional<Recompute> recompute_named(std::string_view word) {
  for (const auto& [name, value] : kWords)
    if (name == word) return value;
  return std::nullopt;
}

}  // namespace ptrain::recipe
