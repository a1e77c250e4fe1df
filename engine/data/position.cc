#include "engine/data/position.h"

#include <nlohmann/json.hpp>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

using nlohmann::json;

constexpr int kVersion = 2;

[[noreturn]] void refuse(const std::string& reason) {
  throw EngineError(ExitCode::kUnusable,
                    "the data position of the checkpoint cannot be read: " + reason,
                    "resume from an older checkpoint");
}

std::int64_t count(const json& object, const char* name) {
  const json& value = object.at(name);
  if (!value.is_number_integer()) refuse(std::string("'") + name + "' is not a whole number");
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() >> 62 != 0;
  if (too_large || value.get<std::int64_t>() < 0)
    refuse(std::string("'") + name + "' is out of range");
  return value.get<std::int64_t>();
}

packing::Strategy strategy_from(const json& object) {
  const auto word = object.at("strategy").get<std::string>();
  for (const auto& [name, strategy] : packing::kStrategies)
    if (word == name) return strategy;
  refuse("'strategy' is not known");
}

json flat(const std::vector<packing::Range>& ranges) {
  json numbers = json::array();
  for (const packing::Range& range : ranges)
    for (const std::int64_t number : {range.document, range.begin, range.end})
      numbers.push_back(number);
  return numbers;
}

std::vector<packing::Range> ranges_from(const json& numbers) {
  if (!numbers.is_array() || numbers.size() % 3 != 0) refuse("'carried' is not a list of triples");
  std::vector<packing::Range> ranges;
  for (std::size_t i = 0; i < numbers.size(); i += 3) {
    for (std::size_t k = i; k < i + 3; ++k)
      if (!numbers[k].is_number_integer()) refuse("'carried' holds more than whole numbers");
    ranges.push_back({numbers[i].get<std::int64_t>(), numbers[i + 1].get<std::int64_t>(),
                      numbers[i + 2].get<std::int64_t>()});
  }
  return ranges;
}

Position parse(const json& object) {
  const std::int64_t version = count(object, "version");
  if (version != kVersion) refuse("its version is unknown to this ptrain");
  Position position;
  position.epoch = count(object, "epoch");
  position.window = count(object, "window");
  position.row = count(object, "row");
  position.packer.sequence = count(object, "sequence");
  position.packer.strategy = strategy_from(object);
  position.first_document = count(object, "first_document");
  position.num_documents = count(object, "num_documents");
  position.carried = ranges_from(object.at("carried"));
  position.documents_total = count(object, "documents_total");
  position.tokens_total = count(object, "tokens_total");
  if (!object.at("seed").is_number_unsigned()) refuse("'seed' is not a whole number");
  position.seed = object.at("seed").get<std::uint64_t>();
  position.index_hash = object.at("index_hash").get<std::string>();
  return position;
}

}  // namespace

std::string to_json_text(const Position& position) {
  return json{{"version", kVersion},
              {"epoch", position.epoch},
              {"window", position.window},
              {"row", position.row},
              {"sequence", position.packer.sequence},
              {"strategy", to_string(position.packer.strategy)},
              {"first_document", position.first_document},
              {"num_documents", position.num_documents},
              {"carried", flat(position.carried)},
              {"documents_total", position.documents_total},
              {"tokens_total", position.tokens_total},
              {"seed", position.seed},
              {"index_hash", position.index_hash}}
      .dump();
}

Position position_from_json_text(const std::string& text) {
  try {
    return parse(json::parse(text));
  } catch (const json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace ptrain::data
