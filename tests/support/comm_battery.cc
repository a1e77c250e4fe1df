#include "tests/support/comm_battery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/comm/window.h"

namespace ptrain::tests {
namespace {

using comm::Communicator;
using comm::ReduceOp;
using Longs = std::vector<std::int64_t>;

template <class T>
constexpr DType kDType = DType::kFloat32;
template <>
constexpr DType kDType<double> = DType::kFloat64;
template <>
constexpr DType kDType<std::int32_t> = DType::kInt32;
template <>
constexpr DType kDType<std::int64_t> = DType::kInt64;

std::size_t z(std::int64_t value) { return static_cast<std::size_t>(value); }

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <class T>
std::span<std::byte> span_of(std::vector<T>& values) {
  return {bytes(values), values.size() * sizeof(T)};
}

// Element i of rank r: of very different sizes, so that the order of a sum shows in its bits.
template <class T>
T value(int rank, std::int64_t i) {
  const double wave = std::sin(1.7 * static_cast<double>(i + 1) + 3.1 * rank);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(1000 * wave);
  return static_cast<T>(wave * std::pow(10.0, static_cast<double>((i * 7 + rank * 5) % 9) - 4));
}

template <class T>
T sum_by_hand(int size, std::int64_t i) {
  T sum = value<T>(0, i);
  for (int rank = 1; rank < size; ++rank) sum = static_cast<T>(sum + value<T>(rank, i));
  return sum;
}

template <class T>
void expect(const char* what, std::int64_t i, T got, T want) {
  if (std::memcmp(&got, &want, sizeof(T)) == 0) return;
  throw std::runtime_error(fmt::format("{} [{}]: {} where {} is right", what, i, got, want));
}

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct Ragged {
  Longs offsets, counts;
  std::int64_t total = 0;
};

// Unequal runs with gaps between them; rank 1 has none.
Ragged ragged(int size, std::int64_t scale) {
  Ragged runs;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    runs.offsets.push_back(runs.total);
    runs.counts.push_back(rank == 1 ? 0 : scale * (rank + 1) + 3 * rank);
    runs.total += runs.counts.back() + rank % 2;
  }
  return runs;
}

template <class T>
std::vector<T> filled(int rank, std::int64_t count) {
  std::vector<T> values(z(count));
  for (std::int64_t i = 0; i < count; ++i) values[z(i)] = value<T>(rank, i);
  return values;
}

template <class T>
void all_gather_of(Communicator& world) {
  const Ragged runs = ragged(world.size(), 501);
  std::vector<T> buffer(z(runs.total), T{7});
  const auto me = z(world.rank());
  for (std::int64_t i = 0; i < runs.counts[me]; ++i)
    buffer[z(runs.offsets[me] + i)] = value<T>(world.rank(), i);
  world.all_gather_v(bytes(buffer), kDType<T>, runs.offsets, runs.counts)->wait();
  std::vector<T> want(buffer.size(), T{7});  // gaps are left alone
  for (int rank = 0; rank < world.size(); ++rank)
    for (std::int64_t i = 0; i < runs.counts[z(rank)]; ++i)
      want[z(runs.offsets[z(rank)] + i)] = value<T>(rank, i);
  for (std::int64_t i = 0; i < runs.total; ++i) expect("gathered", i, buffer[z(i)], want[z(i)]);
}

template <class T>
void reduce_scatter_of(Communicator& world) {
  const Ragged runs = ragged(world.size(), 2100);  // more than one block of sums
  std::vector<T> buffer = filled<T>(world.rank(), runs.total);
  world.reduce_scatter_v(bytes(buffer), kDType<T>, runs.offsets, runs.counts)->wait();
  const std::int64_t begin = runs.offsets[z(world.rank())];
  for (std::int64_t i = begin; i < begin + runs.counts[z(world.rank())]; ++i)
    expect("sum of the own run", i, buffer[z(i)], sum_by_hand<T>(world.size(), i));
}

template <class T>
void all_reduce_of(Communicator& world) {
  for (const std::int64_t count : {0, 1, 3, 20000}) {  // both ways of doing it
    std::vector<T> sums = filled<T>(world.rank(), count);
    std::vector<T> most = sums;
    world.all_reduce(bytes(sums), kDType<T>, count, ReduceOp::kSum)->wait();
    world.all_reduce(bytes(most), kDType<T>, count, ReduceOp::kMax)->wait();
    for (std::int64_t i = 0; i < count; ++i) {
      T largest = value<T>(0, i);
      for (int rank = 1; rank < world.size(); ++rank)
        largest = std::max(largest, value<T>(rank, i));
      expect("sum", i, sums[z(i)], sum_by_hand<T>(world.size(), i));
      expect("maximum", i, most[z(i)], largest);
    }
  }
}

template <void (*F)(Communicator&), void (*G)(Communicator&), void (*H)(Communicator&),
          void (*I)(Communicator&)>
void all_of(Communicator& world) {
  F(world);
  G(world);
  H(world);
  I(world);
}

void broadcast(Communicator& world) {
  for (int root = 0; root < world.size(); ++root) {
    std::vector<double> values = filled<double>(world.rank(), 77);
    world.broadcast(bytes(values), 77 * 8, root)->wait();
    for (std::int64_t i = 0; i < 77; ++i)
      expect("from the root", i, values[z(i)], value<double>(root, i));
  }
}

// A ring in which rank 0 takes no part: only pairs call exchange. The order of pieces is kept.
void exchange(Communicator& world) {
  if (world.rank() > 0 && world.size() > 1) {
    const int others = world.size() - 1;
    const int next = world.rank() % others + 1;
    const int last = (world.rank() + others - 2) % others + 1;
    std::vector<int> first{world.rank()}, second{world.rank() + 100, 5};
    std::vector<int> got_first(1), got_second(2);
    const std::vector<comm::Piece> sends{
        {next, span_of(first)}, {next, {}}, {next, span_of(second)}};
    const std::vector<comm::Piece> receives{
        {last, span_of(got_first)}, {last, {}}, {last, span_of(got_second)}};
    world.exchange(sends, receives)->wait();
    expect("first piece", 0, got_first[0], last);
    expect("second piece", 0, got_second[0], last + 100);
  }
  world.barrier();
}

// Rank s sends rank d the numbers 100 s + d, so often as s + 2 d says: in pieces of one and of the
// rest, some of them empty.
void all_to_all(Communicator& world) {
  const auto count = [](int from, int to) { return z((from + 2 * to) % 4); };
  std::vector<std::vector<int>> sent, received;
  std::vector<comm::Piece> sends, receives;
  const auto add = [](std::vector<comm::Piece>& pieces, int peer, std::vector<int>& values) {
    const std::size_t first = std::min<std::size_t>(values.size(), 1) * sizeof(int);
    pieces.push_back({peer, span_of(values).first(first)});
    pieces.push_back({peer, span_of(values).subspan(first)});
  };
  for (int peer = 0; peer < world.size(); ++peer) {
    sent.emplace_back(count(world.rank(), peer), 100 * world.rank() + peer);
    received.emplace_back(count(peer, world.rank()), -1);
  }
  for (int peer = world.size(); peer-- > 0;) add(sends, peer, sent[z(peer)]);
  for (int peer = 0; peer < world.size(); ++peer) add(receives, peer, received[z(peer)]);
  world.all_to_all_v(sends, receives)->wait();
  for (int peer = 0; peer < world.size(); ++peer)
    for (const int number : received[z(peer)])
      expect("from", peer, number, 100 * peer + world.rank());
}

// Collectives of two phases begun together, waited for in another order on each rank.
void order_of_waits(Communicator& world) {
  const auto twin = world.split(0, world.rank(), "twin");
  std::vector<float> a = filled<float>(world.rank(), 9000), b = a;
  auto first = world.all_reduce(bytes(a), DType::kFloat32, 9000, ReduceOp::kSum);
  auto second = twin->all_reduce(bytes(b), DType::kFloat32, 9000, ReduceOp::kSum);
  if (world.rank() % 2 == 0) std::swap(first, second);
  first->wait();
  while (!second->done()) std::this_thread::yield();
  for (std::int64_t i = 0; i < 9000; ++i) {
    expect("first", i, a[z(i)], sum_by_hand<float>(world.size(), i));
    expect("second", i, b[z(i)], sum_by_hand<float>(world.size(), i));
  }
  require(world.last_collective().communicator == "twin", "the mark is of the whole world");
  require(world.last_collective().verb == "all_reduce", "the mark names the verb");
  require(world.last_collective().sequence == 1, "the mark counts");
  twin->close();
}

// Even ranks end one collective of two phases before they begin the next; odd ranks begin both and
// wait for the second: its messages must not be taken for the first's late phase, which must go on.
void late_phases(Communicator& world) {
  std::vector<float> a = filled<float>(world.rank(), 9000), b = filled<float>(world.rank(), 12000);
  auto first = world.all_reduce(bytes(a), DType::kFloat32, 9000, ReduceOp::kSum);
  if (world.rank() % 2 == 0) first->wait();
  world.all_reduce(bytes(b), DType::kFloat32, 12000, ReduceOp::kSum)->wait();
  first->wait();
  for (std::int64_t i = 0; i < 9000; ++i)
    expect("first", i, a[z(i)], sum_by_hand<float>(world.size(), i));
  for (std::int64_t i = 0; i < 12000; ++i)
    expect("second", i, b[z(i)], sum_by_hand<float>(world.size(), i));
}

// Even and odd ranks, in reverse order; the last rank is left out.
void split(Communicator& world) {
  const bool out = world.rank() == world.size() - 1;
  const auto half = world.split(out ? -1 : world.rank() % 2, -world.rank(), "half");
  require((half == nullptr) == out, "who is in a group");
  if (out) return;
  const int size = (world.size() - 1 + 1 - world.rank() % 2) / 2;
  require(half->size() == size, "size of the group");
  require(half->name() == "half", "name of the group");
  std::vector<std::int64_t> members(z(size));
  members[z(half->rank())] = world.rank();
  Longs offsets, counts(z(size), 1);
  for (int rank = 0; rank < size; ++rank) offsets.push_back(rank);
  half->all_gather_v(bytes(members), DType::kInt64, offsets, counts)->wait();
  for (std::int64_t rank = 0; rank < size; ++rank)
    expect("member", rank, members[z(rank)], world.rank() % 2 + 2 * (size - 1 - rank));
  half->close();
}

void window(Communicator& world) {
  constexpr std::int64_t kCount = 3000;
  const std::int64_t extra = 8 * world.rank();  // segments differ in size
  const auto shared = world.make_window(16 + 8 * kCount + extra, 2);
  require(shared != nullptr, "one node has a window");
  for (int rank = 0; rank + 1 < world.size(); ++rank)
    require(shared->segment(rank) + shared->bytes(rank) == shared->segment(rank + 1),
            "segments have no gaps");
  std::vector<int> all(z(world.size()));
  std::iota(all.begin(), all.end(), 0);
  auto* mine = reinterpret_cast<double*>(shared->segment(world.rank()) + 16);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    require(!shared->expect(all, 0, step)->done(), "nobody is ahead of this rank");
    for (std::int64_t i = 0; i < kCount; ++i) mine[i] = value<double>(world.rank(), i);
    shared->publish(0, step);
    require(shared->expect({world.rank()}, 0, step)->done(), "some ranks alone can be waited for");
    shared->expect(all, 0, step)->wait();
    std::vector<double> sums(z(kCount));
    comm::reduce_from_window(*shared, all, {DType::kFloat64, 16, kCount}, bytes(sums));
    for (std::int64_t i = 0; i < kCount; ++i)
      expect("window sum", i, sums[z(i)], sum_by_hand<double>(world.size(), i));
    shared->publish(1, step);  // has read
    shared->wait(1, step);
    for (std::int64_t i = 0; i < kCount; ++i) mine[i] = -1;
  }
  shared->close();
}

constexpr CommCheck kBattery[] = {
    {"all_gather", all_of<all_gather_of<float>, all_gather_of<double>, all_gather_of<std::int32_t>,
                          all_gather_of<std::int64_t>>},
    {"reduce_scatter", all_of<reduce_scatter_of<float>, reduce_scatter_of<double>,
                              reduce_scatter_of<std::int32_t>, reduce_scatter_of<std::int64_t>>},
    {"all_reduce", all_of<all_reduce_of<float>, all_reduce_of<double>, all_reduce_of<std::int32_t>,
                          all_reduce_of<std::int64_t>>},
    {"broadcast", broadcast},
    {"all_to_all", all_to_all},
    {"exchange", exchange},
    {"order_of_waits", order_of_waits},
    {"late_phases", late_phases},
    {"split", split},
    {"window", window},
};

}  // namespace

std::span<const CommCheck> comm_battery() { return kBattery; }

}  // namespace ptrain::tests
