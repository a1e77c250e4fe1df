#include "core/base/cache_folder.h"

namespace ptrain {

namespace {

// XDG base directories count only when absolute.
bool is_absolute(const char* path) { return path != nullptr && *path == '/'; }

}  // namespace

std::string cache_folder(const char* xdg_cache_home, const char* home) {
  if (is_absolute(xdg_cache_home)) return std::string(xdg_cache_home) + "/ptrain";
  return is_absolute(home) ? std::string(home) + "/.cache/ptrain" : "";
}

}  // namespace ptrain
