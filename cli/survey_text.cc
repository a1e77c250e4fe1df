#include "cli/survey_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ptrain::cli {

nlohmann::json to_json(const packing::Survey& survey) {
  nlohmann::json histogram = nlohmann::json::array(), packed = nlohmann::json::object();
  for (const auto& length_class : survey.histogram)
    histogram.push_back({{"least", length_class.least},
                         {"most", 2 * length_class.least - 1},
                         {"documents", length_class.documents},
                         {"tokens", length_class.tokens}});
  for (const auto& one : survey.packed)
    packed[std::string(to_string(one.strategy))] = {{"rows", one.rows},
                                                    {"efficiency", one.efficiency}};
  return {{"capacity", survey.capacity},
          {"documents", survey.documents},
          {"tokens", survey.tokens},
          {"longest", survey.longest},
          {"cut_documents", survey.cut},
          {"histogram", histogram},
          {"packing", packed}};
}

std::string to_text(const packing::Survey& survey) {
  std::string text = fmt::format("rows of {} tokens: {} documents are longer and are cut\n",
                                 survey.capacity, survey.cut);
  for (const auto& one : survey.packed)
    text += fmt::format("  {:<20} {:>10} rows, {:6.2f} % full\n", to_string(one.strategy), one.rows,
                        100 * one.efficiency);
  return text;
}

std::string histogram_text(const packing::Survey& survey) {
  constexpr double kWidest = 40;
  std::int64_t most = 1;
  for (const auto& length_class : survey.histogram) most = std::max(most, length_class.documents);
  std::string text = fmt::format("{} documents, {} tokens, the longest has {}\n", survey.documents,
                                 survey.tokens, survey.longest);
  text += fmt::format("  {:>23}  {:>10} {:>14}\n", "tokens of a document", "documents", "tokens");
  for (const auto& length_class : survey.histogram) {
    const double share = static_cast<double>(length_class.documents) / static_cast<double>(most);
    text += fmt::format("  {:>11} - {:>9}  {:>10} {:>14}  {}\n", length_class.least,
                        2 * length_class.least - 1, length_class.documents, length_class.tokens,
                        std::string(static_cast<std::size_t>(kWidest * share + 0.5), '#'));
  }
  return text;
}

}  // namespace ptrain::cli
