#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/packing/survey.h"

namespace ptrain::cli {

nlohmann::json to_json(const packing::Survey& survey);
std::string histogram_text(const packing::Survey& survey);  // documents by length, as bars
std::string to_text(const packing::Survey& survey);         // rows and efficiency of each strategy

}  // namespace ptrain::cli
