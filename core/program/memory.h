#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/quantity.h"
#include "core/mesh/buffer_plan.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "core/program/action.h"
#include "core/program/keep.h"

namespace ptrain::program {

// What memory is held for. The engine's arena counts the same classes.
enum class MemoryClass : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kGather,
  kStash,
  kCheckpoint,  // the copy from which a checkpoint is written behind training
  kTemporary,
  kCommunication,
  kRuntime
};
inline constexpr int kNumMemoryClasses = 9;
std::string_view to_string(MemoryClass memory_class);

using BytesByClass = std::array<Bytes, kNumMemoryClasses>;
std::int64_t total_bytes(const BytesByClass& bytes);  // of all classes

// All that the size of an action's memory depends on.
struct MemoryContext {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
  std::span<const mesh::BufferPlan> buffers;
  std::int64_t sequence = 0;     // tokens of a row
  mesh::ShardRanks shards = {};  // whose bytes: shards may differ
  // Of what this rank writes into checkpoints; never of state that is offloaded.
  bool keeps_copy = false;
  // Of the rows that come for a rank's experts: a multiple of an even share. 0: the most that can.
  double expert_load = 0;
  // Of a micro-batch, on one of the ranks that share its rows.
  std::int64_t tokens() const { return layout.micro_batch * sequence / layout.cp; }
  const model::GroupSpec& group(int index) const {
    return architecture.groups[static_cast<std::size_t>(index)];
  }
};

// Rows that come for the experts of a rank.
std::int64_t expert_rows(const MemoryContext& context);

// Of the stash of a layer that `keep` names.
std::int64_t stash_bytes(const MemoryContext& context, const model::LayerSpec& layer, Keep keep);

// What of the whole stash of a block the products of its weights' gradients read.
std::int64_t stash_bytes_for_weights(const MemoryContext& context, const model::LayerSpec& layer);

// A copy of all that one rank writes into a checkpoint: its masters, their optimizer state, and the
// step of the latter beside the first element of each parameter; each starts on 8 bytes.
Bytes copy_bytes(const MemoryContext& context);

// Held from start to end of training: master parameters, their shards in the compute dtype where
// that is another and no gather makes them, optimizer state (where it is offloaded, the ring that
// it passes through), gradients that live across micro-batches, in a shared window the places of
// all gradients, and the copy for checkpoints.
BytesByClass persistent_bytes(const MemoryContext& context);

// Follows a program action by action and counts what is held. The rules (T: tokens()):
//   UNSHARD gG      takes gather: the whole buffer of G in the compute dtype
//   RESHARD gG      gives that back
//   FORWARD lL mM   takes stash: the tensors of L that `keep` names (keep.h), T rows
//   RECOMPUTE lL mM takes stash: the tensors of L that `from` does not name
//   BACKWARD lL mM  takes gradients: the whole buffer of each group it writes that has none now;
//                   gives back the stash of (L, M)
//   BACKWARD_INPUT  takes gradients like BACKWARD; at its end it gives back what of the stash of
//                   (L, M) no product of weights reads (Architecture::is_for_weights), and adds
//                   what they read beside it (queued_bytes of temporary.h); all that goes with
//   BACKWARD_WEIGHT; where a layer queues nothing, with BACKWARD_INPUT
//   REDUCE_GRAD gG  gives the whole gradient buffer of G back, where only the shard's gradients
//                   outlive a micro-batch; this happens when an action waits for it, or at the end
// Taking comes before an action runs, giving back (but for REDUCE_GRAD) after it; of a call in
// segments before the first and after the last. In a shared
// window there is nothing to gather, and whole gradients have places that are held all the time:
// only the stash changes.
// In a pipeline the streams are communication (elsewhere temporary); each is a T x hidden matrix:
//   FORWARD         takes its output, gives its input back; an embedding has no input, a head no
//                   output; on a rank that only shares a spread one it has neither
//   BACKWARD(_INPUT) of a head takes a gradient, which the layers before it change in place; that
//                   of an embedding gives it back
//   RECV            takes one; a SEND's is given back when an action waits for it, or at the end
class MemoryMeter {
 public:
  explicit MemoryMeter(const MemoryContext& context);

  // Call both for every action, in program order.
  void begin(const Action& action);
  void end(const Action& action);

  const BytesByClass& live() const { return live_; }
  // The groups whose whole gradients are there and do not outlive a micro-batch.
  const std::set<int>& held_gradients() const { return held_gradients_; }
  const BytesByClass& peak() const { return peak_; }

 private:
  void take(MemoryClass memory_class, std::int64_t bytes);
  void add_to_stash(const Action& action, std::int64_t bytes);
  void take_stash(const Action& action, Keep before, Keep after);
  void begin_write(const Action& action);
  void end_input(const Action& action);
  void give_stash(const Action& action);
  void begin_streams(const Action& action);
  void end_streams(const Action& action);
  void take_stream(int count);
  // An embedding or a head whose stage another rank has: of the streams it has none.
  bool only_shares(const Action& action) const;
  bool gathers() const { return !context_.layout.shared_window; }
  bool is_pipeline() const { return context_.layout.num_stages() > 1; }
  bool takes_gradients(int group) const;
  std::int64_t whole_bytes(int group, DType dtype) const;
  std::int64_t gathered_bytes_of(int group) const {
    return whole_bytes(group, context_.group(group).compute_dtype);
  }
  const model::LayerSpec& layer(const Action& action) const;

  const MemoryContext context_;
  BytesByClass live_{};
  BytesByClass peak_{};
  std::map<std::pair<int, int>, std::int64_t> stashes_;  // by (layer, micro-batch)
  std::set<int> held_gradients_;                         // groups: a transient whole buffer
  std::map<int, int> reductions_;                        // id to group, until waited for
  std::set<int> sends_;                                  // ids, until waited for
};

// Peak bytes of each class while the program runs once, persistent bytes included.
// kTemporary (temporary.h) and kRuntime are left 0.
BytesByClass peak_bytes(const Program& program, const MemoryContext& context);

}  // namespace ptrain::program
