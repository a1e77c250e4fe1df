#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ptrain::cli {

// For check() of an option: what is wrong with its text, empty where it is good.
using Check = std::function<std::string(const std::string&)>;

// From least to most, both allowed; no sign, blank or exponent.
Check whole_number(std::int64_t least, std::int64_t most);
// Finite and above 0.
Check positive_number();

}  // namespace ptrain::cli
