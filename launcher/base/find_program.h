#pragma once

#include <string>
#include <string_view>

namespace ptrain::base {

// The path of an executable in a PATH-like list of folders, or empty.
std::string find_in_path(std::string_view folders, const std::string& name);
// The same in this process's PATH.
std::string find_program(const std::string& name);

}  // namespace ptrain::base
