#pragma once

#include <string>

namespace ptrain {

// The user's folder for what can be made again at any time, from the values of XDG_CACHE_HOME and
// HOME (null: not set): XDG_CACHE_HOME/ptrain, else HOME/.cache/ptrain; empty where neither is an
// absolute path.
std::string cache_folder(const char* xdg_cache_home, const char* home);

}  // namespace ptrain
