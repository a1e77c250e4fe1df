// Prints every fault point, one a line.
#include <cstdio>

#include "engine/base/fault_points.h"

int main() {
  for (const auto name : ptrain::fault::kPointNames)
    std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
}
