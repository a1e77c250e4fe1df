#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::safetensors {

inline constexpr const char* kSingleFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

// model.safetensors.index.json: tensor name -> name of the file beside it.
using WeightMap = std::map<std::string, std::string>;

// Errors (kUnusable): no weight_map; a file's name that leads out of the folder.
Result<WeightMap> read_index(std::string_view json);
std::string write_index(const WeightMap& weights, std::int64_t total_bytes);

// A plain name of a file: no folder, not hidden.
bool is_file_name(std::string_view name);

}  // namespace ptrain::safetensors
