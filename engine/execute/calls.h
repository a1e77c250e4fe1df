#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/program/action.h"
#include "engine/base/arena.h"
#include "engine/comm/communicator.h"
#include "engine/layers/layer.h"

namespace ptrain::execute {

// A layer's call on its way from segment to segment, and all that must stay until it ends.
struct Call {
  std::vector<Tensor> parameters;
  std::vector<layers::GradientTarget> targets;
  std::vector<layers::WeightProduct> products;
  std::vector<Buffer> scratch;  // that the products read
  Buffer input, output;
  std::optional<layers::Context> context;
  std::optional<layers::Task> task;  // destroyed first: it works with all of the above
};

// The calls under way: one at a time for a layer and micro-batch.
class Calls {
 public:
  // Of the first segment.
  Call& begin(const program::Action& segment);
  // Runs a segment; true where it was the call's last. EngineError (bug): an exchange that it needs
  // was not made.
  bool resume(const program::Action& segment);
  // Of the exchange that the call waits for (layers::Exchange::bytes); 0: for none, or another
  // action.
  std::int64_t bytes_of(const program::Action& exchange) const;
  // Starts the exchange that the call waits for. EngineError (bug): the program has another one.
  void exchange(const program::Action& exchange, comm::Communicator& ranks);
  // Until the exchange that a segment or the next exchange needs is made; its id, or -1 where there
  // is none. A segment goes on beside a shift, for which the next exchange waits.
  int wait_before(const program::Action& action);
  Call& at(const program::Action& segment) { return entry_of(segment).call; }
  void end(const program::Action& segment);
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Call call;
    const layers::Exchange* pending = nullptr;  // what the call waits for
    int exchange = -1;                          // the id of the action under way
    bool is_beside = false;                     // the next segment does not need it
    comm::WorkHandle work;
  };
  static std::pair<int, int> key_of(const program::Action& segment) {
    return {segment.layer_first, segment.micro_batch};
  }
  Entry& entry_of(const program::Action& segment);

  std::map<std::pair<int, int>, Entry> entries_;
};

}  // namespace ptrain::execute
