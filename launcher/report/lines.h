#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ptrain::report {

// A file with a JSON object a line. A run may have been killed, or its disk filled up, within a
// line: what is no object is skipped and counted.
struct Lines {
  std::vector<nlohmann::json> objects;
  int damaged = 0;
};

// None where there is no such file.
Result<Lines> read_lines(const std::string& path);

// A number of an object; NaN where it is missing, of another type, or not finite.
double number_in(const nlohmann::json& object, const char* name);
std::string text_in(const nlohmann::json& object, const char* name);  // empty where there is none

}  // namespace ptrain::report
