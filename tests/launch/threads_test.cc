// The threads of the shipped engine's ranks against the plan's.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

class Threads : public RunFixture {
 protected:
  Threads() : RunFixture(PTRAIN_SHIPPED_BINARY) {}

  // All threads of a rank that trains, on so many cores; what the plan says goes to planned_.
  int threads_of_a_rank(int num_cores) {
    write("cluster.yaml", "name: test\nnodes: [{name: here, cores: " + std::to_string(num_cores) +
                              ", memory_gib: 8}]\n");
    auto process = start_run("", {"shapes.0.steps=1000000", "checkpoint.every_steps=0",
                                  "model.hidden_size=256", "model.intermediate_size=1024"});
    wait_until_ready();
    wait_for_step(5);
    planned_ = nlohmann::json::parse(read(run_.plan()))["shapes"][0]["threads"].get<int>();
    const fs::directory_iterator tasks("/proc/" + std::to_string(pid_of(1)) + "/task");
    const auto count = std::distance(begin(tasks), end(tasks));
    ::kill(process.pid(), SIGINT);
    EXPECT_EQ(end_of(std::move(process)), 20) << output_;
    fs::remove_all(run_.root);
    return static_cast<int>(count);
  }

  int planned_ = 0;
};

// MPI and the control connection have threads of their own: what computes is what comes and goes
// with the plan's number. Not more than two: the matrix library starts none beyond the cores.
TEST_F(Threads, OfARankAreAsManyAsPlanned) {
  const int with_one = threads_of_a_rank(2);
  EXPECT_EQ(planned_, 1);
  const int with_two = threads_of_a_rank(4);
  EXPECT_EQ(planned_, 2);
  EXPECT_EQ(with_two - with_one, 1);
}

}  // namespace
}  // namespace ptrain
