#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/rank_state.h"
#include "engine/comm/transport.h"

namespace ptrain::comm {

// Messages, and what to do on this rank when all of them have arrived.
struct Phase {
  std::vector<Piece> sends;
  std::vector<Piece> receives;
  std::function<void()> finish;
  std::shared_ptr<std::byte[]> scratch;  // where receives lie, if not in the caller's buffer
};

// Which collective this is, for people.
struct Label {
  std::string communicator;
  std::string_view verb;
  std::uint64_t sequence = 0;
  std::vector<int> world_ranks;  // of the communicator's ranks

  CollectiveMark mark() const { return {communicator, verb, sequence, false}; }
};

// Throws: the wait for this collective took longer than limit_s, or another rank failed.
[[noreturn]] void throw_timed_out(const Label& label, const std::vector<int>& missing,
                                  double limit_s);
[[noreturn]] void throw_peer_failed(const Label& label, const std::vector<int>& missing,
                                    int world_rank);

// A collective as phases, one after the other.
class PhasedWork final : public Work, private Operation {
 public:
  PhasedWork(Transport& transport, std::shared_ptr<RankState> state, Label label, int tag,
             std::vector<Phase> phases);
  ~PhasedWork() override;
  PhasedWork(const PhasedWork&) = delete;
  PhasedWork& operator=(const PhasedWork&) = delete;
  bool done() override;
  void wait() override { wait_doing({}); }
  void wait_doing(const std::function<void()>& meanwhile) override;

 private:
  bool advance() override;
  bool complete() const { return next_ == phases_.size() && transfer_ == nullptr; }
  std::vector<int> missing() { return transfer_ ? transfer_->missing() : std::vector<int>{}; }

  Transport& transport_;
  std::shared_ptr<RankState> state_;
  Label label_;
  int tag_;
  std::vector<Phase> phases_;
  std::size_t next_ = 0;                // the phase to start next
  std::unique_ptr<Transfer> transfer_;  // of phase next_ - 1
};

}  // namespace ptrain::comm
