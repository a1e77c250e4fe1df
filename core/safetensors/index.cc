#include "core/safetensors/index.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/safetensors/json.h"

namespace ptrain::safetensors {
namespace {

using nlohmann::json;

constexpr int kDepth = 8;  // metadata may hold anything

tl::unexpected<Error> refuse(std::string why) {
  return fail(ExitCode::kUnusable, fmt::format("{}: {}", kIndexFile, why));
}

}  // namespace

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && !name.starts_with('.') && is_printable(name) &&
         name.find_first_of("/\\") == std::string_view::npos;
}

Result<WeightMap> read_index(std::string_view text) {
  PTRAIN_TRY(const json object, parse_object(text, kIndexFile, kDepth));
  const auto found = object.find("weight_map");
  if (found == object.end() || !found->is_object() || found->empty())
    return refuse("it has no weight_map");
  WeightMap weights;
  for (const auto& [name, file] : found->items()) {
    if (!file.is_string() || !is_file_name(file.get_ref<const std::string&>()))
      return refuse(
          fmt::format("'{}' is said to lie elsewhere than in a file of this folder", shown(name)));
    weights[name] = file.get<std::string>();
  }
  return weights;
}

std::string write_index(const WeightMap& weights, std::int64_t total_bytes) {
  const json object{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weights}};
  return object.dump(2) + "\n";
}

}  // namespace ptrain::safetensors
