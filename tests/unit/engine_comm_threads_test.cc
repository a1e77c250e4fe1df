#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/base/engine_error.h"
#include "engine/comm/window.h"
#include "tests/support/comm_battery.h"
#include "tests/support/ranks.h"

namespace ptrain::comm {
namespace {

class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, DoWhatEveryBackendMust) {
  for (const tests::CommCheck& check : tests::comm_battery()) {
    SCOPED_TRACE(check.name);
    EXPECT_NO_THROW(tests::run_ranks(GetParam(), check.body));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Threads, testing::Values(1, 2, 3, 4, 5));

TEST(Single, DoesWhatEveryBackendMust) {
  const auto world = make_single();
  for (const tests::CommCheck& check : tests::comm_battery()) {
    SCOPED_TRACE(check.name);
    EXPECT_NO_THROW(check.body(*world));
  }
  world->close();
}

// The sender waits for a sum that the receiver begins while it waits, and that a heartbeat sees.
TEST(ThreadsWait, BeginsOtherCollectivesMeanwhile) {
  std::atomic<bool> is_seen = false;
  tests::run_ranks(2, [&](Communicator& world) {
    std::array<double, 1> one{1};
    std::array<std::byte, 8> message{};
    const Piece piece{1 - world.rank(), message};
    const auto add_up = [&] {
      return world.all_reduce(reinterpret_cast<std::byte*>(one.data()), DType::kFloat64, 1,
                              ReduceOp::kSum);
    };
    if (world.rank() == 0) {
      add_up()->wait();
      while (!is_seen) std::this_thread::yield();
      return world.exchange({&piece, 1}, {})->wait();
    }
    WorkHandle sum;
    world.exchange({}, {&piece, 1})->wait_doing([&] {
      if (sum == nullptr) sum = add_up();
      if (world.last_collective().waiting) is_seen = true;
    });
    sum->wait();
    EXPECT_EQ(one[0], 2);
    EXPECT_GT(world.seconds_waited(), 0);
  });
}

// More than the parts of others may take at a time, all of it wanted by one rank.
TEST(ThreadsReduce, ManyBytesAreAddedUpInPieces) {
  constexpr std::int64_t kCount = 17'000'001;
  tests::run_ranks(2, [&](Communicator& world) {
    std::vector<float> data(kCount);
    for (std::int64_t i = 0; i < kCount; ++i)
      data[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000 + world.rank());
    const std::vector<std::int64_t> offsets{0, kCount}, counts{kCount, 0};
    world
        .reduce_scatter_v(reinterpret_cast<std::byte*>(data.data()), DType::kFloat32, offsets,
                          counts)
        ->wait();
    for (std::int64_t i = 0; world.rank() == 0 && i < kCount; ++i)
      ASSERT_EQ(data[static_cast<std::size_t>(i)], static_cast<float>(i % 1000 * 2 + 1)) << i;
  });
}

TEST(ThreadsFailure, ARankThatThrowsEndsTheWaitsOfTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const auto body = [](Communicator& world) {
    const auto window = world.make_window(8, 1);
    if (world.rank() == 2) throw std::runtime_error("planted");
    if (world.rank() == 0) world.barrier();
    window->wait(0, 1);
  };
  try {
    tests::run_ranks(3, body);
    FAIL() << "no failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 2: planted");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(ThreadsFailure, ATimeOutNamesCommunicatorSequenceNumberAndMissingRanks) {
  const auto ranks = make_threads(3, 0.05);
  std::string message;
  const auto play = [&](int rank) {
    const auto pair = ranks[static_cast<std::size_t>(rank)]->split(rank == 1 ? 1 : 0, 0, "outer");
    if (rank != 0) return;
    pair->broadcast(nullptr, 0, 0)->wait();
    try {
      pair->barrier();
    } catch (const EngineError& error) {
      message = error.what();
      EXPECT_EQ(error.error().code, ExitCode::kHang);
      EXPECT_GT(pair->seconds_waited(), 0);
      pair->abort(1);
    }
  };
  { std::array threads{std::jthread(play, 0), std::jthread(play, 1), std::jthread(play, 2)}; }
  EXPECT_EQ(message,
            "communicator outer: barrier (number 2), missing ranks [2]: nothing came for 0.05 s");
}

TEST(ThreadsFailure, AnUnfinishedWorkTakesItsMessagesBack) {
  const auto ranks = make_threads(2);
  std::array<int, 2> values{};
  const auto piece = [&](int peer) {
    return std::array{Piece{peer, std::as_writable_bytes(std::span(values))}};
  };
  ranks[0]->exchange({}, piece(1)).reset();
  const auto sent = ranks[1]->exchange(piece(0), {});
  EXPECT_FALSE(sent->done()) << "the receive was taken back, so nothing is there to meet";
  EXPECT_TRUE(ranks[0]->exchange({}, piece(1))->done());
  EXPECT_TRUE(sent->done());
  ranks[0]->abort(1);
}

}  // namespace
}  // namespace ptrain::comm
