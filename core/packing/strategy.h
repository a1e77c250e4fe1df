#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace ptrain::packing {

// How pieces of documents are put into rows.
enum class Strategy { kNextFit, kFirstFit, kBestFitDecreasing };

// Their words in recipes, checkpoints and reports.
inline constexpr auto kStrategies = std::to_array<std::pair<std::string_view, Strategy>>({
    {"next_fit", Strategy::kNextFit},
    {"first_fit", Strategy::kFirstFit},
    {"best_fit_decreasing", Strategy::kBestFitDecreasing},
});

constexpr std::string_view to_string(Strategy strategy) {
  for (const auto& [word, named] : kStrategies)
    if (named == strategy) return word;
  return "";
}

}  // namespace ptrain::packing
