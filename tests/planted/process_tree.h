#pragma once

namespace ptrain::planted_test {

// SIGKILL to the supervisor of this rank, its mpirun and all their descendants, this process last.
// The run is what lies below the uppermost ancestor that is an mpirun or a ptrain.
[[noreturn]] void kill_whole_run();

}  // namespace ptrain::planted_test
