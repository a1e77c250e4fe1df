#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/divide.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/copy.h"
#include "engine/checkpoint/saving.h"
#include "tests/support/ranks.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

class Saving : public ::testing::Test {
 protected:
  Saving() {
    // In memory where there is such a file system: a hundred saves wait five hundred times for a
    // disk.
    const fs::path parent = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (parent / "ptrain-XXXXXX").string();
    root = mkdtemp(name.data());
  }
  ~Saving() override { fs::remove_all(root); }

  static TensorItem part_of(const std::string& key, std::vector<float>& data, std::int64_t begin,
                            std::int64_t whole) {
    return {key, DType::kFloat32, {whole}, begin, begin + std::ssize(data), data.data()};
  }
  static std::vector<float> loaded(const std::string& folder, std::int64_t count) {
    const auto world = comm::make_single();
    std::vector<float> data(static_cast<std::size_t>(count));
    Source(folder, *world).load({{part_of("model.w", data, 0, count)}, {}});
    world->close();
    return data;
  }
  std::string folder_of(int step) const { return root + "/step-0000000" + std::to_string(step); }

  std::string root;
};

TEST_F(Saving, HoldsWhatWasThereWhenTheCopyWasTaken) {
  const auto world = comm::make_single();
  std::vector<float> state(100003);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i) / 8;
  const std::vector<float> before = state;
  float count = 7;
  Items items{{{"optim.state.w.step", DType::kFloat32, {}, 0, 1, &count},
               part_of("model.w", state, 0, std::ssize(state))},
              {}};
  std::vector<std::byte> memory(static_cast<std::size_t>(copy_bytes(items)));
  EXPECT_EQ(std::ssize(memory), 8 + 4 * 100004);  // each tensor starts on 8 bytes
  copy_tensors(items, memory);
  checkpoint::Saving saving(folder_of(1), items, *world, {});
  std::fill(state.begin(), state.end(), -1.0f);
  std::thread([&] { saving.work(); }).join();
  EXPECT_FALSE(saving.agree());
  std::thread([&] { saving.work(); }).join();
  EXPECT_TRUE(saving.agree());
  EXPECT_EQ(loaded(folder_of(1), std::ssize(before)), before);
  world->close();
}

// Starts and lengths that are no multiple of what is copied at a time.
TEST_F(Saving, CopiesAnyNumberOfBytes) {
  for (const std::size_t offset : {0, 1, 3, 8})
    for (std::size_t size = 0; size < 80; ++size) {
      std::vector<std::uint8_t> from(offset + size), to(round_up(size + 16, 8), 0xee);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 7 + 1);
      const auto count = static_cast<std::int64_t>(size);
      Items items{{{"a", DType::kUInt8, {count}, 0, count, from.data() + offset}}, {}};
      const std::size_t place = offset % 8 == 0 ? 8 : 0;
      copy_tensors(items, std::as_writable_bytes(std::span(to)).subspan(place));
      const auto* copy = static_cast<const std::uint8_t*>(items.tensors[0].data);
      ASSERT_TRUE(
          std::equal(copy, copy + size, from.begin() + static_cast<std::ptrdiff_t>(offset)));
      ASSERT_EQ(to[place + size], 0xee);
    }
}

// Back to back, each rank's work on another thread than its agreements.
TEST_F(Saving, SeveralRanksOneAfterTheOther) {
  constexpr int kSaves = 9;
  tests::run_ranks(3, [&](comm::Communicator& world) {
    std::vector<float> data(5);
    for (int step = 1; step <= kSaves; ++step) {
      std::fill(data.begin(), data.end(), static_cast<float>(10 * step + world.rank()));
      const auto items_of = [&](int rank) {
        return Items{{part_of("model.w", data, 5 * rank, 15)}, {{"train.step", step}}};
      };
      Items items = items_of(world.rank());
      std::vector<std::byte> memory(static_cast<std::size_t>(copy_bytes(items)));
      copy_tensors(items, memory);
      checkpoint::Saving saving(folder_of(step), items, world, items_of);
      do {
        std::thread writer([&] { saving.work(); });
        world.barrier();  // training communicates meanwhile
        data[0] = -1;
        writer.join();
      } while (!saving.agree());
      EXPECT_EQ(saving.is_published(), world.rank() == 0);
    }
  });
  for (int step = 1; step <= kSaves; ++step) {
    const auto found = loaded(folder_of(step), 15);
    for (std::size_t i = 0; i < 15; ++i)
      EXPECT_EQ(found[i], static_cast<float>(10 * step) + static_cast<float>(i / 5));
  }
}

// One rank's disk is full: all hear of it, in the agreement, and the next save works.
TEST_F(Saving, OneFailsForAll) {
  tests::run_ranks(2, [&](comm::Communicator& world) {
    std::vector<float> data(5, 1);
    const auto items_of = [&](int rank) {
      return Items{{part_of("model.w", data, 5 * rank, 10)}, {}};
    };
    const Items items = items_of(world.rank());
    checkpoint::Saving saving(folder_of(1), items, world, items_of);
    if (world.rank() == 1) fs::create_directory(root + "/.tmp-step-00000001/__1_0.distcp");
    EXPECT_NO_THROW(saving.work());
    try {
      saving.agree();
      ADD_FAILURE() << "agreed";
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kUnusable);
      EXPECT_NE(error.error().message.find("__1_0.distcp: File exists"), std::string::npos);
    }
    world.barrier();
    EXPECT_TRUE(fs::is_empty(root));
    world.barrier();
    save(folder_of(2), items, world, items_of);
  });
  EXPECT_EQ(loaded(folder_of(2), 10), std::vector<float>(10, 1));
}

// The first rank lists what is in the others' files by the layout. What they wrote must be that.
TEST_F(Saving, ARankThatSavesOtherThanItsLayoutIsFound) {
  tests::run_ranks(2, [&](comm::Communicator& world) {
    std::vector<float> data(5, 1);
    const auto items_of = [&](int rank) {  // as many bytes, but of another tensor
      return Items{{part_of(rank == 0 ? "model.w" : "model.v", data, 0, 5)}, {}};
    };
    const Items items{{part_of(world.rank() == 0 ? "model.w" : "model.u", data, 0, 5)}, {}};
    try {
      save(folder_of(1), items, world, items_of);
      ADD_FAILURE() << "saved";
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kBug);
      EXPECT_NE(error.error().message.find("rank 1 saved other tensors than its layout has"),
                std::string::npos)
          << error.error().message;
    }
  });
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_F(Saving, GivesUpWhenAsked) {
  const auto world = comm::make_single();
  std::vector<float> data(5, 1);
  std::stop_source stop;
  stop.request_stop();
  checkpoint::Saving saving(folder_of(1), {{part_of("model.w", data, 0, 5)}, {}}, *world, {});
  saving.work(stop.get_token());
  EXPECT_THROW(saving.agree(), EngineError);
  EXPECT_TRUE(fs::is_empty(root));
  world->close();
}

// With every third failing: what a save holds is given back in any case.
TEST_F(Saving, AHundredSavesBehindTrainingKeepNothing) {
  const auto world = comm::make_single();
  std::vector<float> data(100000, 1.5f);
  Items items{{part_of("model.w", data, 0, 100000)}, {{"train.step", 7}}};
  std::vector<std::byte> memory(static_cast<std::size_t>(copy_bytes(items)));
  std::size_t early = 0;
  const auto files = [] {
    const auto open = fs::directory_iterator("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto early_files = files();
  for (int step = 1; step <= 100; ++step) {
    Items copied = items;
    copy_tensors(copied, memory);
    std::stop_source stop;
    if (step % 3 == 0) stop.request_stop();
    try {
      checkpoint::Saving saving(folder_of(1), copied, *world, {});
      do std::thread([&] { saving.work(stop.get_token()); }).join();
      while (!saving.agree());
    } catch (const EngineError&) {
      EXPECT_EQ(step % 3, 0);
    }
    if (step == 10) early = mallinfo2().uordblks;
  }
  EXPECT_LE(mallinfo2().uordblks, early + 4096);
  EXPECT_EQ(files(), early_files);
  world->close();
}

}  // namespace
}  // namespace ptrain::checkpoint
