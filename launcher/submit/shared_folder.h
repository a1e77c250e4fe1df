#pragma once

#include <string>

#include "core/base/result.h"

namespace ptrain::submit {

// Refuses (kUsage) a run directory that nodes would not see: in memory, or in a folder for
// temporary files, of which every machine has its own. Where this program itself lies in the same
// such place, it is taken for shared, since nodes must find the program too.
Status check_shared(const std::string& directory, const std::string& program);

// The folder for temporary files that a path lies in; empty: in none. `tmpdir`: of the environment.
std::string temporary_folder(const std::string& path, const std::string& tmpdir);

}  // namespace ptrain::submit
