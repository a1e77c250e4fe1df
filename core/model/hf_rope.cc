#include "core/model/hf_rope.h"

#include <fmt/format.h>

#include "core/model/hf_words.h"
#include "core/model/layer_types.h"

namespace ptrain::model {
namespace {

using nlohmann::json;
using recipe::RopeScaling;
using recipe::RopeType;

struct Notes {
  std::vector<std::string>& reasons;
  std::vector<std::string>& warnings;
};

void read_type(HfReader& reader, RopeScaling& scaling) {
  std::string word;
  reader.read("type", word);
  reader.read("rope_type", word);  // transformers 5; wins over the older name
  if (word.empty()) return;
  if (const auto type = value_of(kRopeWords, word)) {
    scaling.rope_type = *type;
  } else {
    reader.refuse("rope_type",
                  fmt::format("'{}' is not known; allowed: default, linear, llama3, yarn", word));
  }
}

// Where the file leaves the original context out, it is the model's.
void read_context(HfReader& reader, std::int64_t max_positions, RopeScaling& scaling) {
  if (scaling.rope_type != RopeType::kLlama3 && scaling.rope_type != RopeType::kYarn) return;
  scaling.original_max_position_embeddings = max_positions;
  reader.read("original_max_position_embeddings", scaling.original_max_position_embeddings);
  const std::int64_t original = scaling.original_max_position_embeddings;
  if (scaling.factor == 0 && original > 0)
    scaling.factor = static_cast<double>(max_positions) / static_cast<double>(original);
}

// One set of parameters: its theta, where it has one, and its scaling.
void read_parameters(const json& object, const std::string& path, std::int64_t max_positions,
                     double& theta, RopeScaling& scaling, Notes notes) {
  HfReader reader(object, path + ".", notes.reasons);
  reader.read_positive("rope_theta", theta);
  read_type(reader, scaling);
  for (const ScalingField& field : kScalingFields)
    if (field.is_read_by(scaling.rope_type))
      reader.read(std::string(field.name), scaling.*field.member);
  read_context(reader, max_positions, scaling);
  if (scaling.rope_type == RopeType::kYarn) reader.read("truncate", scaling.truncate);
  // transformers uses the two together or not at all.
  if (scaling.mscale == 0 || scaling.mscale_all_dim == 0)
    scaling.mscale = scaling.mscale_all_dim = 0;
  double turned = 1;
  reader.read("partial_rotary_factor", turned);
  if (turned != 1) reader.refuse("partial_rotary_factor", "only whole heads are turned here");
  for (std::string& sentence : reader.unused()) notes.warnings.push_back(std::move(sentence));
}

void read_local(const json& object, recipe::Model& model, Notes notes) {
  const std::string path = fmt::format("rope_parameters.{}", kSlidingAttention);
  RopeScaling scaling;
  read_parameters(object, path, model.max_position_embeddings, model.rope_local_base_freq, scaling,
                  notes);
  if (scaling.rope_type != RopeType::kDefault)
    notes.reasons.push_back(path + ".rope_type: layers with a window are never scaled here");
}

void read_by_layer_type(const json& object, bool has_local, recipe::Model& model, Notes notes) {
  if (!has_local)
    notes.reasons.push_back("rope_parameters: by layer type, but this family has one table");
  for (const auto& [name, value] : object.items()) {
    if (!value.is_object()) continue;
    if (name == kFullAttention) {
      read_parameters(value, "rope_parameters." + name, model.max_position_embeddings,
                      model.rope_theta, model.rope_scaling, notes);
    } else if (name == kSlidingAttention && has_local) {
      read_local(value, model, notes);
    }
  }
}

// Without what may also stand outside, or has two names.
json said_of_scaling(json table) {
  if (table.contains("type") && !table.contains("rope_type")) table["rope_type"] = table["type"];
  table.erase("type");
  table.erase("rope_theta");
  return table;
}

// Whether both are there and say unlike things; null: it is not there.
bool contradict(const json* first, const json* second) {
  const bool both =
      first != nullptr && second != nullptr && first->is_object() && second->is_object();
  return both && said_of_scaling(*first) != said_of_scaling(*second);
}

}  // namespace

void read_rope(HfReader& reader, bool has_local, recipe::Model& model,
               std::vector<std::string>& reasons, std::vector<std::string>& warnings) {
  const Notes notes{reasons, warnings};
  reader.read_positive("rope_theta", model.rope_theta);
  if (has_local) reader.read_positive("rope_local_base_freq", model.rope_local_base_freq);
  if (contradict(reader.find("rope_scaling"), reader.find("rope_parameters")))
    return reader.refuse(
        "rope_scaling",
        "it differs from rope_parameters, and versions of transformers read one or "
        "the other; keep one of them");
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const json* found = reader.find(name);
    if (found == nullptr || found->is_null()) continue;
    if (!found->is_object()) {
      reader.refuse(name, "is not an object");
    } else if (found->contains(std::string(kFullAttention)) ||
               found->contains(std::string(kSlidingAttention))) {
      read_by_layer_type(*found, has_local, model, notes);
    } else {
      read_parameters(*found, name, model.max_position_embeddings, model.rope_theta,
                      model.rope_scaling, notes);
    }
  }
}

}  // namespace ptrain::model
