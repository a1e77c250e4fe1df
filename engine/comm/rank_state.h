#pragma once

#include <any>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/comm/communicator.h"

namespace ptrain::comm {

// Something that goes on while its rank asks for it.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual bool advance() = 0;  // true when complete
};

// What all communicators of one rank share: the operations under way, so that waiting for one moves
// them all (else two ranks that wait in a different order would block each other), and what a
// heartbeat tells. The mark and the seconds may be read by another thread; the rest may not.
class RankState {
 public:
  void add(Operation& operation) { pending_.push_back(&operation); }
  void remove(const Operation& operation) { std::erase(pending_, &operation); }
  void advance_all();
  // Advances everything until finished() or the limit; says which. Gives the core away while it
  // waits: ranks may outnumber cores. mark() is `what` meanwhile.
  bool wait(const CollectiveMark& what, const std::function<bool()>& finished, double limit_s);
  // Memory that an unfinished message may still write to.
  void keep(std::any memory) { kept_.push_back(std::move(memory)); }

  void set_mark(const std::string& communicator, std::string_view verb, std::uint64_t sequence);
  CollectiveMark mark() const;
  // For other ranks; not for a core, which something else may have had meanwhile.
  double seconds_waited() const { return seconds_waited_.load(std::memory_order_relaxed); }

 private:
  std::vector<Operation*> pending_;
  std::vector<std::any> kept_;
  mutable std::mutex mutex_;
  CollectiveMark mark_;                     // begun last
  const CollectiveMark* waited_ = nullptr;  // of the wait() under way
  std::atomic<double> seconds_waited_ = 0;
};

}  // namespace ptrain::comm
