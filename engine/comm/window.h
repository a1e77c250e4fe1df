#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/comm/phased_work.h"

namespace ptrain::comm {

// How a window's memory is laid out: the epochs, then the ranks' segments.
struct WindowShape {
  int rank = 0;
  int num_slots = 0;
  std::vector<std::int64_t> bytes;  // of each rank's segment

  std::int64_t segments_begin() const;
  std::int64_t total_bytes() const;
};

// Memory that all ranks of a communicator on one node see: one segment a rank, one right after the
// other in rank order with no gap, so that shards that lie in the segments are the gathered buffer.
// The first begins at a multiple of 64. Beside them `num_slots` epochs a rank: counters by which a
// rank tells the others how far it is; what it wrote before publish() is seen by those who saw the
// epoch. Epochs begin at 0. Made by Communicator::make_window, which must outlive it.
class Window {
 public:
  // How a wait behaves, and what its time-out says.
  struct Waiting {
    std::shared_ptr<RankState> state;
    Transport& transport;
    Label label;
  };
  Window(Communicator& owner, std::unique_ptr<SharedMemory> memory, WindowShape shape,
         Waiting waiting);
  ~Window();  // only complains when close() was not called

  int rank() const { return shape_.rank; }
  int size() const { return static_cast<int>(shape_.bytes.size()); }
  std::byte* segment(int rank) const { return segments_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const { return shape_.bytes[static_cast<std::size_t>(rank)]; }

  void publish(int slot, std::uint64_t epoch);  // this rank's
  std::uint64_t epoch(int rank, int slot) const;
  // Done when all of `ranks` have published `epoch` or a later one; must not outlive the window.
  // Its wait: EngineError after the communicator's time limit.
  WorkHandle expect(std::vector<int> ranks, int slot, std::uint64_t epoch);
  // The same of every rank, waited for.
  void wait(int slot, std::uint64_t epoch);
  void close();  // collective

 private:
  class Expectation;
  std::atomic_ref<std::uint64_t> counter(int rank, int slot) const;
  std::vector<int> late(const std::vector<int>& ranks, int slot, std::uint64_t epoch) const;
  void wait(const std::vector<int>& ranks, int slot, std::uint64_t epoch);

  Communicator& owner_;
  std::unique_ptr<SharedMemory> memory_;
  WindowShape shape_;
  Waiting waiting_;
  std::vector<int> all_;  // ranks
  std::vector<std::byte*> segments_;
  bool closed_ = false;
};

// `count` elements that begin `offset` bytes into every segment.
struct WindowRun {
  DType dtype = DType::kFloat32;
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

// output[i] = the sum over `ranks`, in their order, of element i of the run: the bits of
// reduce_scatter_v, in one pass. `output` may be this rank's run. The ranks must have published
// that their runs are written.
void reduce_from_window(const Window& window, std::span<const int> ranks, const WindowRun& run,
                        std::byte* output);

}  // namespace ptrain::comm
