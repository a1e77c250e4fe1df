#pragma once

#include <string>

namespace ptrain::comm {

// Who this process is among the processes that one launcher (mpirun, srun --mpi=pmix) started.
struct Identity {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of its node
  int local_size = 1;
  std::string node;        // host name
  std::string namespace_;  // the launcher's name of the job; empty without a launcher
};

// Asks the launcher by PMIx; without one, a world of one process. Before make_mpi (PMIx_Init must
// come before MPI_Init_thread). leave() must follow, after the world communicator is closed:
// mpirun takes a process that ends without it for a failed one.
Identity identify();

// Whether a launcher answered identify(): only then may MPI be used.
bool is_launched();

// Takes leave of the launcher, if there is one.
void leave();

}  // namespace ptrain::comm
