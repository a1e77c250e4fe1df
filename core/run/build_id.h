#pragma once

#include <string_view>

namespace ptrain::run {

// Version and a hash of all that the command and its engine both compile (core/ and
// engine/entry.h). Two files of one build have the same; the engine refuses a caller with another.
std::string_view build_id();

}  // namespace ptrain::run
