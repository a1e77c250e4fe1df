#include "engine/comm/phases.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/comm/reduce.h"

namespace ptrain::comm {
namespace {

// Up to here an all-reduce sends everything to everybody: one latency in place of two.
constexpr std::int64_t kSmallBytes = 16 << 10;

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

void add(std::vector<Piece>& pieces, int peer, std::span<std::byte> bytes) {
  if (!bytes.empty()) pieces.push_back({peer, bytes});
}

// Room for the parts of the other ranks, one after the other; mine is not in it. Phases that follow
// each other may share it.
struct Parts {
  Parts(Seat seat, std::int64_t bytes_of_one)
      : bytes(bytes_of_one),
        me(seat.rank),
        memory(std::make_shared_for_overwrite<std::byte[]>(as_size(bytes * (seat.size - 1)))) {}
  std::span<std::byte> part(int rank, std::size_t size) const {
    return {memory.get() + bytes * (rank < me ? rank : rank - 1), size};
  }
  std::int64_t bytes;
  int me;
  std::shared_ptr<std::byte[]> memory;
};

// Most that the parts of the other ranks may take at a time.
constexpr std::int64_t kMostScratch = 64 << 20;

// The phase that fetches every other rank's part of `mine` and reduces them into `mine`. The caller
// adds the sends.
Phase reduce_phase(Seat seat, std::span<std::byte> mine, DType dtype, ReduceOp op,
                   const Parts& parts) {
  Phase phase;
  phase.scratch = parts.memory;
  std::vector<const std::byte*> inputs;
  for (int rank = 0; rank < seat.size; ++rank) {
    const auto part = rank == seat.rank ? mine : parts.part(rank, mine.size());
    inputs.push_back(part.data());
    if (rank != seat.rank) add(phase.receives, rank, part);
  }
  phase.finish = [=] {
    const auto count = static_cast<std::int64_t>(mine.size()) / size_of(dtype);
    reduce_in_order(dtype, op, inputs, count, mine.data());
  };
  return phase;
}

// Elements [begin, begin + count) of each run, as far as it goes.
Runs piece_of(const Runs& runs, std::int64_t begin, std::int64_t count) {
  Runs piece{runs.buffer, runs.dtype, runs.offsets, runs.counts};
  for (std::size_t rank = 0; rank < runs.counts.size(); ++rank) {
    piece.offsets[rank] += std::min(begin, runs.counts[rank]);
    piece.counts[rank] = std::clamp<std::int64_t>(runs.counts[rank] - begin, 0, count);
  }
  return piece;
}

}  // namespace

std::span<std::byte> Runs::run(int rank) const {
  const auto r = as_size(rank);
  return {buffer + offsets[r] * size_of(dtype), as_size(counts[r] * size_of(dtype))};
}

Runs even_runs(std::byte* buffer, DType dtype, std::int64_t count, int size) {
  Runs runs{buffer, dtype, {}, {}};
  for (std::int64_t rank = 0; rank < size; ++rank) {
    runs.offsets.push_back(count * rank / size);
    runs.counts.push_back(count * (rank + 1) / size - count * rank / size);
  }
  return runs;
}

std::vector<Phase> all_gather_phases(Seat seat, const Runs& runs) {
  Phase phase;
  for (int step = 1; step < seat.size; ++step) {
    const int to = (seat.rank + step) % seat.size;
    const int from = (seat.rank + seat.size - step) % seat.size;
    add(phase.sends, to, runs.run(seat.rank));
    add(phase.receives, from, runs.run(from));
  }
  return {phase};
}

std::vector<Phase> reduce_scatter_phases(Seat seat, const Runs& runs, ReduceOp op) {
  const std::int64_t longest = std::ranges::max(runs.counts), element = size_of(runs.dtype);
  const std::int64_t count = std::clamp<std::int64_t>(kMostScratch / (element * seat.size), 1,
                                                      std::max<std::int64_t>(1, longest));
  const Parts parts(seat, std::min(count, runs.count(seat.rank)) * element);
  std::vector<Phase> phases;
  for (std::int64_t begin = 0; begin == 0 || begin < longest; begin += count) {
    const Runs piece = piece_of(runs, begin, count);
    phases.push_back(reduce_phase(seat, piece.run(seat.rank), runs.dtype, op, parts));
    for (int step = 1; step < seat.size; ++step) {
      const int to = (seat.rank + step) % seat.size;
      add(phases.back().sends, to, piece.run(to));
    }
  }
  return phases;
}

std::vector<Phase> all_reduce_phases(Seat seat, std::byte* buffer, DType dtype, std::int64_t count,
                                     ReduceOp op) {
  const std::span<std::byte> whole{buffer, as_size(count * size_of(dtype))};
  if (count * size_of(dtype) <= kSmallBytes) {
    const Parts parts(seat, std::ssize(whole));
    Phase phase = reduce_phase(seat, whole, dtype, op, parts);
    for (int rank = 0; rank < seat.size; ++rank)
      if (rank != seat.rank) add(phase.sends, rank, whole);
    return {phase};
  }
  const Runs runs = even_runs(buffer, dtype, count, seat.size);
  std::vector<Phase> phases = reduce_scatter_phases(seat, runs, op);
  phases.push_back(all_gather_phases(seat, runs).front());
  return phases;
}

std::vector<Phase> all_to_all_phases(Seat seat, std::span<const Piece> sends,
                                     std::span<const Piece> receives) {
  Phase phase;
  std::vector<std::span<std::byte>> kept;
  for (const Piece& piece : sends) {
    PT_CHECK(piece.peer >= 0 && piece.peer < seat.size);
    if (piece.peer == seat.rank) {
      kept.push_back(piece.bytes);
    } else {
      phase.sends.push_back(piece);
    }
  }
  std::size_t next = 0;
  for (const Piece& piece : receives) {
    PT_CHECK(piece.peer >= 0 && piece.peer < seat.size);
    if (piece.peer != seat.rank) {
      phase.receives.push_back(piece);
      continue;
    }
    PT_CHECK(next < kept.size() && kept[next].size() == piece.bytes.size());
    std::ranges::copy(kept[next++], piece.bytes.begin());
  }
  PT_CHECK(next == kept.size());
  return {phase};
}

std::vector<Phase> broadcast_phases(Seat seat, std::span<std::byte> bytes, int root) {
  const int place = (seat.rank - root + seat.size) % seat.size;  // 0 = root
  const auto rank_at = [&](int other) { return (other + root) % seat.size; };
  Phase receive, send;
  int step = 1;  // the parent differs in the lowest bit set, the children in the bits below it
  while (step < seat.size && (place & step) == 0) step *= 2;
  if (place != 0) add(receive.receives, rank_at(place - step), bytes);
  for (step /= 2; step > 0; step /= 2)
    if (place + step < seat.size) add(send.sends, rank_at(place + step), bytes);
  return {receive, send};
}

std::vector<Phase> barrier_phases(Seat seat) {
  Phase phase;
  for (int step = 1; step < seat.size; ++step) {
    phase.sends.push_back({(seat.rank + step) % seat.size, {}});
    phase.receives.push_back({(seat.rank + seat.size - step) % seat.size, {}});
  }
  return {phase};
}

}  // namespace ptrain::comm
