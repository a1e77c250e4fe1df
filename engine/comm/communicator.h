#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace ptrain::comm {

enum class ReduceOp { kSum, kMax };

// A collective under way. Its buffers must stay alive and untouched until it is done.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool done() = 0;  // makes progress; never blocks
  virtual void wait() = 0;  // EngineError after the communicator's time limit
};
using WorkHandle = std::unique_ptr<Work>;

// One point-to-point piece of an exchange.
struct Piece {
  int peer = 0;
  std::span<std::byte> bytes;
};

// A group of ranks that communicate in order. Every verb is collective over the group (send and
// receive: over the pair) and must be called by all its ranks in the same order, on one thread a
// rank. Counts and offsets are in elements of `dtype` (float32, float64, int32, int64), one a rank.
// Sums are made in rank order 0..n-1 in the dtype itself, so every backend gives the same bits.
class Communicator {
 public:
  virtual ~Communicator() = default;  // only complains when close() was not called

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;

  // buffer holds rank r's counts[r] elements at offsets[r]; each rank's own run is filled; after:
  // all runs.
  virtual WorkHandle all_gather_v(std::byte* buffer, DType dtype,
                                  std::span<const std::int64_t> offsets,
                                  std::span<const std::int64_t> counts) = 0;
  // Before: each rank has a whole buffer; after: its own run holds the sum over ranks; other runs
  // are undefined.
  virtual WorkHandle reduce_scatter_v(std::byte* buffer, DType dtype,
                                      std::span<const std::int64_t> offsets,
                                      std::span<const std::int64_t> counts) = 0;
  virtual WorkHandle all_reduce(std::byte* buffer, DType dtype, std::int64_t count,
                                ReduceOp op) = 0;
  virtual WorkHandle all_to_all_v(const std::byte* input,
                                  std::span<const std::int64_t> input_offsets,
                                  std::span<const std::int64_t> input_counts, std::byte* output,
                                  std::span<const std::int64_t> output_offsets,
                                  std::span<const std::int64_t> output_counts, DType dtype) = 0;
  virtual WorkHandle broadcast(std::byte* buffer, std::int64_t bytes, int root) = 0;
  virtual WorkHandle exchange(std::span<const Piece> sends, std::span<const Piece> receives) = 0;
  virtual void barrier() = 0;
  // The ranks that gave the same color, ordered by key. color < 0: not in any; returns null.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name) = 0;
  virtual void close() = 0;          // collective; before the destructor
  virtual void abort(int code) = 0;  // ends every rank of the job
};

// A world of one rank: every verb is done at once.
std::unique_ptr<Communicator> make_single();

// MPI_COMM_WORLD, after PMIx has told who we are. time_limit_s: how long a wait may take.
struct MpiOptions {
  double time_limit_s = 1800;
};
std::unique_ptr<Communicator> make_mpi(const MpiOptions& options);

// `size` communicators of one process, one for each thread that plays a rank.
std::vector<std::unique_ptr<Communicator>> make_threads(int size);

}  // namespace ptrain::comm
