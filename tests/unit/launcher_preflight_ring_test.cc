#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "launcher/preflight/ring.h"

namespace ptrain::preflight {
namespace {

using std::chrono::milliseconds;

// Nodes as threads; the hub is told of `num_expected`.
std::vector<NodeReport> ring_of(int num_nodes, int num_expected, const std::string& token = "") {
  auto hub = RingHub::open("127.0.0.1", num_expected);
  EXPECT_TRUE(hub);
  std::vector<NodeReport> reports(static_cast<std::size_t>(num_nodes));
  std::atomic<int> done = 0;
  std::vector<std::jthread> nodes;
  for (auto& report : reports) {
    report.node = "n" + std::to_string(nodes.size());
    nodes.emplace_back([&] {
      join_ring("127.0.0.1", hub->port(), token.empty() ? hub->token() : token, report);
      ++done;
    });
  }
  for (int i = 0; i < 500 && done < num_nodes; ++i) {
    hub->poll(milliseconds(2));
    if (i == 50) hub->close();  // those who are there go on without the others
  }
  return reports;
}

TEST(Ring, EachNodeReachesTheNext) {
  for (const auto& report : ring_of(4, 4)) {
    EXPECT_EQ(report.next_error, "");
    EXPECT_GT(report.next_bytes_per_s, 0);
  }
}

TEST(Ring, GoesOnWithoutANodeThatDoesNotCome) {
  for (const auto& report : ring_of(3, 4)) EXPECT_EQ(report.next_error, "");
}

TEST(Ring, StrangersAreNotLetIn) {
  for (const auto& report : ring_of(1, 1, "guessed"))
    EXPECT_EQ(report.next_error, "was not told of another node");
}

}  // namespace
}  // namespace ptrain::preflight
