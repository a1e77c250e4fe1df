// Any text is read or refused with a report, and what is read survives its JSON form. Lines after
// a line of equals signs are overrides; `model.file: self` merges the text into its own model.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/recipe/json.h"
#include "launcher/recipe/reader.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string> lines_of(std::string_view text) {
  constexpr std::size_t kMostOverrides = 16;
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < kMostOverrides) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void try_text(std::string_view input) {
  constexpr std::string_view kRule = "\n=====\n";
  const std::size_t cut = input.find(kRule);
  const std::string text(input.substr(0, cut));
  const auto overrides = lines_of(cut == std::string_view::npos ? std::string_view()
                                                                : input.substr(cut + kRule.size()));
  const auto find_model = [&](const std::string& file) -> Result<recipe::NamedText> {
    if (file != "self") return fail(ExitCode::kUsage, "there is no such file");
    return recipe::NamedText{file, text};
  };
  const auto result = recipe::read_recipe_text({"recipe.yaml", text}, overrides, find_model);
  if (!result) {
    require(result.error().code == ExitCode::kUsage && !result.error().message.empty());
    return;
  }
  const auto json = nlohmann::json::parse(recipe::to_json(*result).dump());
  const auto again = recipe::from_json(json);
  require(again.has_value() && *again == *result);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
