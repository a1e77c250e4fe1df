#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/state_plan.h"
#include "core/model/architecture.h"
#include "engine/base/arena.h"
#include "engine/base/tensor.h"

namespace ptrain::state {

// What one rank holds of one group: its shard of the master parameters, of the gradients and of the
// optimizer's state, and for as long as a program wants them the whole parameters and the whole
// gradients. Whole parameters are of the architecture's compute dtype, all else is of its dtype.
// Not thread-safe.
class GroupBuffer {
 public:
  struct Place {
    int shard_rank = 0;
    // ZeRO 2 and 3: only the shard of the gradients outlives a micro-batch.
    bool shard_gradients = false;
    bool counts = true;  // the first of the replicas that hold this shard
    // The optimizer's state is elsewhere, but for the time between place_state and its end.
    bool offloads_state = false;
    // In a window that the peers see, cleared: the whole parameters, of which each rank writes its
    // own shard, and this rank's whole gradients. Null: in the arena.
    // The masters lie among them too where both are of one dtype.
    std::byte* shared_parameters = nullptr;
    std::byte* shared_gradients = nullptr;
  };
  GroupBuffer(const model::Architecture& architecture, const mesh::BufferPlan& plan, Place place,
              Arena& arena);

  const mesh::BufferPlan& plan() const { return plan_; }
  const std::vector<mesh::ShardRun>& runs() const { return runs_; }
  // Whether this rank's copy of the run is the one that norms and checkpoints count.
  bool counts(const mesh::ShardRun& run) const;
  // Whether its gradient is none of a loss, but how uneven loads are (UpdateRule::kBalance).
  bool is_balance(const mesh::ShardRun& run) const;
  const std::vector<std::int64_t>& shard_offsets() const { return shard_offsets_; }
  Arena& arena() const { return arena_; }
  bool is_sharded() const { return plan_.num_ranks() > 1; }

  // After every change of the masters: the peers and the own layers see it from here on.
  void publish_masters();

  // Parameters. open_whole takes the whole buffer with the own shard in its place and returns its
  // start; the other shards are the gather's to fill. Without sharding the whole parameters stay
  // open, and are the masters where both are of one dtype; in a window nothing is taken and nothing
  // is to fill.
  std::byte* open_whole();
  void close_whole();
  // View of a whole parameter: [out, in], or [1, n] of one dim. Only while open.
  Tensor parameter(int parameter) const;

  // Whole gradients of a parameter, as `parameter`; undefined before the first write of a step, or
  // since take_reduced gave the whole buffer back.
  Tensor gradient(int parameter);
  std::byte* whole_gradients();
  // Whether it holds a sum that the next backward adds to. If not, that one overwrites it.
  bool has_gradient(int parameter) const { return written_[placement_index(parameter)]; }
  void mark_gradient(int parameter) { written_[placement_index(parameter)] = true; }
  // Zeros where no backward has written since the last step or reduction.
  void fill_gradients();
  // After a reduction: adds the own shard to what earlier ones of the step left, and gives the
  // whole buffer back if it is transient.
  void take_reduced();
  // Moves what earlier reductions of the step left into reduced_shard(), so that replicas add up
  // the sum over all micro-batches at once.
  void add_earlier();
  void clear_gradients();
  // The own shard within the whole gradients, padding included: what a reduction over replicas adds
  // up before take_reduced.
  Tensor reduced_shard();

  // What all reductions of a step leave of the gradients, padding included, [1, n].
  Tensor gradient_shard() { return contiguous(shard_gradients(), dtype_, 1, shard_size()); }

  // Views of one run of the shard, [1, n].
  Tensor master(const mesh::ShardRun& run) const;
  Tensor gradient(const mesh::ShardRun& run);
  // The run's optimizer state, in the order of model::state_of, and the views of it, [1, values];
  // offloaded state has views only while it is in a buffer.
  const std::vector<mesh::StatePiece>& state_pieces(const mesh::ShardRun& run) const;
  Tensor state(const mesh::StatePiece& piece) const;
  // Offloaded state is at `data` from now on; null: away.
  void place_state(std::byte* data) { placed_state_ = data; }

 private:
  std::size_t placement_index(int parameter) const;
  const mesh::ParameterPlacement& placement(int parameter) const {
    return plan_.placements[placement_index(parameter)];
  }
  Tensor matrix(const Tensor& whole, int parameter) const;
  Tensor piece(std::byte* shard, const mesh::ShardRun& run) const;
  std::byte* shard_gradients();
  std::byte* master_start() const;
  std::int64_t shard_size() const {
    return plan_.shard_sizes[static_cast<std::size_t>(place_.shard_rank)];
  }
  // Of a buffer that holds all shards.
  Tensor own_shard(std::byte* whole, DType dtype) const;
  void copy_masters(std::byte* whole) const;
  bool copies_masters() const { return compute_dtype_ != dtype_; }
  std::byte* at(std::byte* data, std::int64_t elements) const {
    return data + elements * size_of(dtype_);
  }
  std::int64_t bytes(std::int64_t elements) const { return elements * size_of(dtype_); }

  const model::Architecture& architecture_;
  mesh::BufferPlan plan_;
  Place place_;
  Arena& arena_;
  DType dtype_, compute_dtype_;
  std::vector<mesh::ShardRun> runs_;
  std::vector<std::int64_t> shard_offsets_;
  Buffer master_;    // none where they lie in place_.shared_parameters
  Buffer computed_;  // whole parameters for good: neither gathered nor masters
  mesh::StatePlan state_plan_;
  Buffer state_;  // none where it is offloaded
  std::byte* placed_state_ = nullptr;
  Buffer whole_;  // gathered parameters
  Buffer whole_gradients_;
  Buffer shard_gradients_;  // only with place_.shard_gradients
  std::vector<bool> written_;  // by placement: its whole gradient holds a sum
  bool is_open_ = false;
  bool shard_written_ = false;
};

// Of all groups of a rank.
void publish_masters(std::span<GroupBuffer> groups);

}  // namespace ptrain::state
