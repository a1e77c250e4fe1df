#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/comm/communicator.h"

namespace ptrain::comm {

// Messages under way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool done() = 0;                 // makes progress; never blocks
  virtual std::vector<int> missing() = 0;  // the peers whose part has not come yet
};

// Memory that every rank of a group has mapped.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() = 0;
  virtual void close() = 0;  // collective
};

// A group within its parent: the members' ranks there, in the order of their new ranks.
struct Group {
  int color = 0;
  int rank = 0;
  std::vector<int> members;
};

// What a backend must provide; every collective is made of it (collectives.cc), so that all
// backends give the same bits. One thread a rank. split, share and close are collective.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual double time_limit_s() const = 0;
  // Messages between one pair with one tag (0..32767) arrive in the order they were started.
  virtual std::unique_ptr<Transfer> start(std::span<const Piece> sends,
                                          std::span<const Piece> receives, int tag) = 0;
  // 64-byte aligned, not cleared. Null, on every rank alike, when the group is not on one node.
  virtual std::unique_ptr<SharedMemory> share(std::int64_t bytes) = 0;
  // group.color < 0: takes part, but is in no group; returns null.
  virtual std::unique_ptr<Transport> split(const Group& group) = 0;
  virtual void close() = 0;
  virtual void abort(int code) = 0;
  // The world rank that called abort(), where the others survive it.
  virtual std::optional<int> failed_rank() const = 0;
};

// The communicator of a whole world over a transport.
std::unique_ptr<Communicator> make_world(std::unique_ptr<Transport> transport);

}  // namespace ptrain::comm
