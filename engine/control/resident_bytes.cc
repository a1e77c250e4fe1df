#include "engine/control/resident_bytes.h"

#include <unistd.h>

#include <fstream>

namespace ptrain::control {

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;  // pages
  if (!(file >> total >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace ptrain::control
