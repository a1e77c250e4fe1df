#include "engine/control/cpus_allowed.h"

#include <fstream>

namespace ptrain::control {

std::string cpus_allowed() {
  std::ifstream file("/proc/thread-self/status");
  for (std::string name, value; file >> name && std::getline(file >> std::ws, value);)
    if (name == "Cpus_allowed_list:") return value;
  return "";
}

}  // namespace ptrain::control
