#pragma once

namespace ptrain::fault {

// A named place where the test build of the engine can fail, stop or kill this rank. In the shipped
// module it does nothing (no_faults.cc).
void point(const char* place, int rank);

}  // namespace ptrain::fault
