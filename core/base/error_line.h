#pragma once

#include <string>

#include "core/base/result.h"

namespace ptrain {

// What went wrong and, where there is one, the remedy: "cannot write a: ...; make space".
inline std::string error_line(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

}  // namespace ptrain
