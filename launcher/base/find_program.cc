#include "launcher/base/find_program.h"

#include <unistd.h>

#include <cstdlib>

namespace ptrain::base {

std::string find_in_path(std::string_view folders, const std::string& name) {
  while (!folders.empty()) {
    const auto end = folders.find(':');
    const std::string path = std::string(folders.substr(0, end)) + "/" + name;
    if (path.front() == '/' && ::access(path.c_str(), X_OK) == 0) return path;
    if (end == std::string_view::npos) break;
    folders.remove_prefix(end + 1);
  }
  return "";
}

std::string find_program(const std::string& name) {
  const char* folders = std::getenv("PATH");
  return find_in_path(folders == nullptr ? "" : folders, name);
}

}  // namespace ptrain::base
