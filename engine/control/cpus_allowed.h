#pragma once

#include <string>

namespace ptrain::control {

// The CPUs that this thread may run on, as the kernel writes them: "0-3,8". Empty: it does not
// tell.
std::string cpus_allowed();

}  // namespace ptrain::control
