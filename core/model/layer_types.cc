#include "core/model/layer_types.h"

namespace ptrain::model {

std::vector<std::string> words_of(std::string_view layer_types) {
  std::vector<std::string> words;
  bool more = !layer_types.empty();
  while (more) {
    const std::size_t comma = layer_types.find(',');
    std::string_view word = layer_types.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    words.emplace_back(word);
    more = comma != std::string_view::npos;
    layer_types.remove_prefix(more ? comma + 1 : layer_types.size());
  }
  return words;
}

LayerType layer_type(std::string_view layer_types, std::int64_t layer) {
  const std::vector<std::string> words = words_of(layer_types);
  if (words.empty()) return LayerType::kFull;
  const auto place = static_cast<std::size_t>(layer) % words.size();
  return words[place] == kSlidingAttention ? LayerType::kSliding : LayerType::kFull;
}

}  // namespace ptrain::model
