#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ptrain::cli {

// For check() of an option: what is wrong with its text, empty where it is good.
using Check = std::function<std::string(const std::string&)>;

Check whole_number(std::int64_t least, std::int64_t most);
Check positive_number();

}  // namespace ptrain::cli
