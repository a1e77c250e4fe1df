// Random layouts of tiny models beside one process: see --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

#include "engine/comm/bootstrap_pmix.h"
#include "tests/random/draw.h"
#include "tests/random/trial.h"

namespace ptrain::random {
namespace {

struct Arguments {
  std::int64_t cases = 150, first = 0;
  std::uint64_t seed = 1;
  int ranks = 0;
  std::string line;  // of one case
  bool shrinks = true, mpi = false, lists = false;
};

void print(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) fmt::print("  {}\n", fault);
}

// Whether the case is as it must be.
bool try_case(Trials& trials, const Case& one, std::int64_t index, const Arguments& arguments) {
  // Before it runs: it may crash.
  fmt::print("{:>5}  {}\n", index, to_text(one));
  std::fflush(stdout);
  const bool repeats = index % 5 == 0 || !arguments.line.empty();
  const auto faults = trials.run(one, {.repeats = repeats});
  print(faults);
  if (faults.empty()) return true;
  if (arguments.shrinks) {
    const Case small = trials.shrink(one);
    fmt::print("  the plainest that fails: random_layouts --case '{}'\n", to_text(small));
    print(trials.run(small, {.repeats = true}));
  }
  return false;
}

int run_threads(const Arguments& arguments) {
  Trials trials;
  if (!arguments.line.empty()) {
    const auto one = from_text(arguments.line);
    if (!one) return fmt::print(stderr, "{}\n", one.error().message), 2;
    return try_case(trials, *one, 0, arguments) ? 0 : 1;
  }
  std::int64_t failed = 0, none = 0;
  for (std::int64_t i = arguments.first; i < arguments.first + arguments.cases; ++i) {
    const auto one = draw(arguments.seed, i, arguments.ranks);
    if (!one) {
      ++none;
    } else if (arguments.lists) {
      fmt::print("{:>5}  {}\n", i, to_text(*one));
    } else if (!try_case(trials, *one, i, arguments)) {
      ++failed;
    }
  }
  fmt::print("{} cases of seed {}, {} failed; {} numbers had no layout\n", arguments.cases - none,
             arguments.seed, failed, none);
  return failed == 0 ? 0 : 1;
}

// The first cases from `first` on that have a layout of as many ranks.
bool all_agree(comm::Communicator& world, const Arguments& arguments) {
  const std::int64_t end = arguments.first + 100 * arguments.cases;  // most have one
  Trials trials;
  bool agree = true;
  std::int64_t num_run = 0;
  for (std::int64_t i = arguments.first; num_run < arguments.cases && i < end; ++i) {
    const auto one = draw(arguments.seed, i, world.size());
    if (!one) continue;
    ++num_run;
    if (world.rank() == 0) fmt::print("{:>5}  {}\n", i, to_text(*one));
    std::fflush(stdout);
    const auto faults = trials.run_on(world, *one);
    for (const std::string& fault : faults) fmt::print("  rank {}: {}\n", world.rank(), fault);
    agree = agree && faults.empty();
  }
  if (world.rank() == 0) fmt::print("{} cases of {} ranks\n", num_run, world.size());
  if (world.rank() == 0 && num_run < arguments.cases)
    fmt::print(
        "no more of the numbers {} to {} have a layout of {} ranks: choose another --first\n",
        arguments.first, end - 1, world.size());
  return agree && num_run == arguments.cases;
}

int run_mpi(const Arguments& arguments) {
  comm::identify();
  const auto world = comm::make_mpi({.time_limit_s = 60});
  const bool agree = all_agree(*world, arguments);
  world->close();
  comm::leave();
  return agree ? 0 : 1;
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Trains tiny models on random layouts and compares each with one process. A failing case is "
      "printed as a line that --case takes.");
  app.add_option("--cases", arguments.cases, "how many");
  app.add_option("--seed", arguments.seed, "of their sequence");
  app.add_option("--first", arguments.first, "number of the first");
  app.add_option("--ranks", arguments.ranks, "of every case; 0: 1 to 8");
  app.add_option("--case", arguments.line, "one case, as printed");
  app.add_flag("!--no-shrink", arguments.shrinks, "print failing cases as they are");
  app.add_flag("--list", arguments.lists, "print the cases, run none");
  app.add_flag("--mpi", arguments.mpi, "under mpirun, whose ranks run the cases");
  CLI11_PARSE(app, argc, argv);
  return arguments.mpi ? run_mpi(arguments) : run_threads(arguments);
}

}  // namespace
}  // namespace ptrain::random

int main(int argc, char** argv) {
  try {
    return ptrain::random::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
