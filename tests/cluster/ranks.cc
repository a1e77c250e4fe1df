// An MPI program to try a cluster with.
//   ranks                 each rank says "rank SIZE HOST", after one sum over all
//   ranks sum SECONDS     sums over all ranks for so long, then rank 0 says how many: "sums N"
//   ranks rate MIB        rank 0 sends so much to the last rank and says "rate MEGABITS_PER_SECOND"
#define OMPI_SKIP_MPICXX 1  // the C++ bindings do not compile with our warnings
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

struct World {
  int rank = 0;
  int size = 1;
};

double sum(double value) {
  double total = 0;
  MPI_Allreduce(&value, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return total;
}

int say_hello(World world) {
  const double expected = world.size * (world.size - 1) / 2.0;
  if (sum(world.rank) != expected) return 1;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::printf("%d %d %s\n", world.rank, world.size, host.data());
  return 0;
}

int sum_for(World world, double seconds) {
  const double begin = MPI_Wtime();
  int num_sums = 0;
  double is_time = 0;  // one rank's clock decides for all
  while (is_time == 0) {
    is_time = sum(world.rank == 0 && MPI_Wtime() - begin > seconds ? 1 : 0);
    ::usleep(20'000);
    ++num_sums;
  }
  if (world.rank == 0) std::printf("sums %d\n", num_sums);
  return 0;
}

int measure_rate(World world, int mebibytes) {
  std::vector<char> bytes(1 << 20);
  const int size = static_cast<int>(bytes.size());
  const int last = world.size - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < mebibytes && world.rank == 0; ++i)
    MPI_Send(bytes.data(), size, MPI_CHAR, last, 0, MPI_COMM_WORLD);
  for (int i = 0; i < mebibytes && world.rank == last; ++i)
    MPI_Recv(bytes.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);  // what was sent has arrived
  const double megabits = 8.0 * size * mebibytes / 1e6;
  if (world.rank == 0) std::printf("rate %.1f\n", megabits / (MPI_Wtime() - begin));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  const std::string_view what = argc > 2 ? argv[1] : "";
  int code = 0;
  if (what == "sum")
    code = sum_for(world, std::atof(argv[2]));
  else if (what == "rate")
    code = measure_rate(world, std::atoi(argv[2]));
  else
    code = say_hello(world);
  MPI_Finalize();
  return code;
}
