#pragma once

#include <vector>

#include "engine/comm/phased_work.h"

namespace ptrain::comm {

// This rank in its group.
struct Seat {
  int rank = 0;
  int size = 1;
};

// One run of elements a rank in one buffer.
struct Runs {
  std::byte* buffer = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> counts;

  std::int64_t count(int rank) const { return counts[static_cast<std::size_t>(rank)]; }
  std::span<std::byte> run(int rank) const;
};

// `count` elements in `size` runs whose lengths differ by one at most.
Runs even_runs(std::byte* buffer, DType dtype, std::int64_t count, int size);

// What each rank does in a collective. Every run travels straight to where it is wanted, so each
// rank sends and receives no more bytes than a ring would, in one phase; where the parts to be
// reduced would take much memory, in several.
std::vector<Phase> all_gather_phases(Seat seat, const Runs& runs);
std::vector<Phase> reduce_scatter_phases(Seat seat, const Runs& runs, ReduceOp op);
// A reduce-scatter and an all-gather over even runs; small buffers go whole to everybody at once.
std::vector<Phase> all_reduce_phases(Seat seat, std::byte* buffer, DType dtype, std::int64_t count,
                                     ReduceOp op);
// Copies what the rank keeps.
std::vector<Phase> all_to_all_phases(Seat seat, std::span<const Piece> sends,
                                     std::span<const Piece> receives);
// A binomial tree: receive from the parent, then send to the children.
std::vector<Phase> broadcast_phases(Seat seat, std::span<std::byte> bytes, int root);
// An empty message between any two ranks, so that the missing ones are known by name.
std::vector<Phase> barrier_phases(Seat seat);

}  // namespace ptrain::comm
