#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"

namespace ptrain::comm {

class Window;

enum class ReduceOp { kSum, kMax };

// A collective under way. Its buffers must stay alive and untouched until it is done, and its
// communicator open. Asking one Work also moves the others of the same rank forward.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool done() = 0;  // makes progress; never blocks
  virtual void wait() = 0;  // EngineError after the communicator's time limit
  // The same; calls `meanwhile` again and again until it is done, which may start collectives.
  virtual void wait_doing(const std::function<void()>& meanwhile) {
    meanwhile();
    wait();
  }
};
using WorkHandle = std::unique_ptr<Work>;

// One piece of what a rank sends or receives.
struct Piece {
  int peer = 0;
  std::span<std::byte> bytes;
};

// The collective that a rank began last or waits in, on any communicator of its world; for
// heartbeats.
struct CollectiveMark {
  std::string communicator;
  std::string_view verb;       // static text
  std::uint64_t sequence = 0;  // from 1 on that communicator; exchanges are counted apart
  bool waiting = false;        // for other ranks, now
};

// A group of ranks that communicate in order. Every verb is collective over the group (exchange:
// over the pairs it names) and must be called by all its ranks in the same order, on one thread a
// rank. Counts and offsets are in elements of `dtype`, one a rank. Sums (float32, float64, int32,
// int64) are made in rank order 0..n-1 in the dtype itself, so MPI, threads and the window give the
// same bits.
class Communicator {
 public:
  using Counts = std::span<const std::int64_t>;
  virtual ~Communicator() = default;  // only complains when close() was not called

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;

  // `buffer` holds rank r's counts[r] elements at offsets[r]. Before: own run; after: all runs.
  virtual WorkHandle all_gather_v(std::byte* buffer, DType dtype, Counts offsets,
                                  Counts counts) = 0;
  // Before: each rank has a whole buffer; after: its own run holds the sum over ranks; the other
  // runs are undefined.
  virtual WorkHandle reduce_scatter_v(std::byte* buffer, DType dtype, Counts offsets,
                                      Counts counts) = 0;
  virtual WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count,
                                ReduceOp op) = 0;
  virtual WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) = 0;
  // Any pieces from and to all ranks, the own one among them: what a rank sends to itself is copied
  // at once. Of a pair both sides give as many, of equal sizes, in one order.
  virtual WorkHandle all_to_all_v(std::span<const Piece> sends,
                                  std::span<const Piece> receives) = 0;
  // Pieces between one pair arrive in the order they were given. An empty piece is a message too.
  virtual WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) = 0;
  virtual void barrier() = 0;
  // The ranks that gave the same color, ordered by key. color < 0: not in any; returns null.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name) = 0;
  // Memory that all ranks of the group see, `bytes` of this rank among it; null when the group does
  // not lie on one node. See window.h.
  virtual std::unique_ptr<Window> make_window(std::int64_t bytes, int num_slots) = 0;
  virtual void close() = 0;          // collective; before the destructor
  virtual void abort(int code) = 0;  // ends every rank of the job

  // Of this rank, over all communicators split from the same world. Any thread may ask.
  virtual CollectiveMark last_collective() const = 0;
  virtual double seconds_waited() const = 0;
};

// A world of one rank: every verb is done at once.
std::unique_ptr<Communicator> make_single();

struct MpiOptions {
  double time_limit_s = 1800;                          // how long a wait may take
  std::int64_t message_bytes = std::int64_t{1} << 30;  // longer pieces travel in several messages
};
// MPI_COMM_WORLD; calls MPI_Init_thread, and close() calls MPI_Finalize. Once a process, and only
// where identify() found a launcher.
std::unique_ptr<Communicator> make_mpi(const MpiOptions& options);

// `size` communicators of one process, one for each thread that plays a rank. abort() makes every
// wait of the others throw.
std::vector<std::unique_ptr<Communicator>> make_threads(int size, double time_limit_s = 60);

}  // namespace ptrain::comm
