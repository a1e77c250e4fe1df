#include "core/model/hf_reader.h"

#include <fmt/format.h>

#include "core/recipe/spelling.h"

namespace ptrain::model {

using nlohmann::json;

const json* HfReader::find(const std::string& name) {
  asked_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

void HfReader::read(const std::string& name, std::int64_t& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  // Sizes are written as 8 or 8.0; no size of a model comes near 2^53.
  constexpr double kMost = 9e15;
  const double number = found->is_number() ? found->get<double>() : 0;
  if (!found->is_null() && !(found->is_number() && number >= 0 && number <= kMost &&
                             number == static_cast<double>(static_cast<std::int64_t>(number))))
    return wrong_kind(name, *found, "a whole number that is not negative");
  value = static_cast<std::int64_t>(number);
}

void HfReader::read(const std::string& name, double& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_null() && !(found->is_number() && found->get<double>() >= 0))
    return wrong_kind(name, *found, "a number that is not negative");
  value = found->is_null() ? 0 : found->get<double>();
}

void HfReader::read_positive(const std::string& name, double& value) {
  read(name, value);
  const json* found = find(name);
  if (found != nullptr && found->is_number() && value == 0) refuse(name, "0 is not above zero");
}

void HfReader::read(const std::string& name, bool& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_null() && !found->is_boolean()) return wrong_kind(name, *found, "true or false");
  value = !found->is_null() && found->get<bool>();
}

void HfReader::read(const std::string& name, std::string& value) {
  const json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_null() && !found->is_string()) return wrong_kind(name, *found, "a text");
  value = found->is_null() ? "" : found->get<std::string>();
}

void HfReader::refuse(const std::string& name, const std::string& why) {
  reasons_.push_back(fmt::format("{}: {}", path_of(name), why));
}

std::vector<std::string> HfReader::unused() const {
  // Those that the file has are not meant.
  std::vector<std::string> absent;
  for (const std::string& name : asked_)
    if (!object_.contains(name)) absent.push_back(name);
  std::vector<std::string> sentences;
  for (const auto& [name, value] : object_.items()) {
    if (asked_.contains(name)) continue;
    const std::string near = recipe::nearest(name, absent);
    sentences.push_back(fmt::format("{} is not used{}", path_of(name),
                                    near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  return sentences;
}

void HfReader::wrong_kind(const std::string& name, const json& found, const char* wanted) {
  constexpr std::size_t kLongest = 60;
  const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
  refuse(name, fmt::format("{} is not {}", text.substr(0, kLongest), wanted));
}

}  // namespace ptrain::model
