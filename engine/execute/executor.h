#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/mesh/layout.h"
#include "core/mesh/stages.h"
#include "core/model/architecture.h"
#include "core/program/action.h"
#include "engine/base/arena.h"
#include "engine/comm/communicator.h"
#include "engine/data/batch.h"
#include "engine/data/context_part.h"
#include "engine/execute/activations.h"
#include "engine/execute/calls.h"
#include "engine/execute/gradient_sums.h"
#include "engine/execute/lane_queue.h"
#include "engine/execute/offload.h"
#include "engine/execute/queued_products.h"
#include "engine/execute/sharing.h"
#include "engine/execute/step_end.h"
#include "engine/execute/transfers.h"
#include "engine/layers/layer.h"
#include "engine/state/group_buffer.h"

namespace ptrain::execute {

// Called when an action begins, all it waits for being done, and when it ends; for the trace.
using ActionObserver = std::function<void(const program::Action&, bool begins)>;

// Runs the programs of one rank on tensors. Every rank of the world must run its program of the
// same step at the same time: the communication in it is collective. One thread.
class Executor {
 public:
  // Collective over the world, and so is close(), after which the parameters may be gone.
  // `make_store`: for layouts that offload optimizer state.
  Executor(const model::Architecture& architecture, const mesh::Layout& layout,
           const Communicators& communicators, Arena& arena,
           const state::StoreMaker& make_store = {});
  void close();

  // One training step; the micro-batches are those that the program names m0, m1, ... Here and
  // below ranks that share rows all give the whole rows.
  StepResult train(const program::Program& program, std::span<const data::MicroBatch> micro_batches,
                   const StepSettings& settings);
  // A forward-only program: loss sums over all ranks.
  layers::LossSums evaluate(const program::Program& program,
                            std::span<const data::MicroBatch> micro_batches);
  // A forward-only program over one micro-batch: logits [1, vocabulary] of token `position`, on
  // every rank. Collective over the world.
  std::vector<double> logits(const program::Program& program, const data::MicroBatch& micro_batch,
                             std::int64_t position);

  std::span<state::GroupBuffer> groups() { return groups_; }
  // Null where state is resident.
  Offload* offload() { return offload_ ? &*offload_ : nullptr; }
  void observe(ActionObserver observer) { observer_ = std::move(observer); }

  // For an observer, of the running program: what this forward has made of the stream, what this
  // backward has made of its gradient, the sums up to now, and the stash that this forward keeps.
  Tensor stream(const program::Action& forward) {
    return activations_.get(forward.layer_last + 1, forward.micro_batch,
                            stream_rows(forward.micro_batch));
  }
  Tensor stream_gradient(const program::Action& backward) {
    return gradients_.get(backward.layer_first - 1, backward.micro_batch,
                          stream_rows(backward.micro_batch));
  }
  const layers::LossSums& sums() const { return sums_; }
  std::span<const Tensor> stash(const program::Action& forward) const {
    return stashes_.views(forward.layer_first, forward.micro_batch);
  }
  // That this rank hands in to an exchange of a layer which begins; 0: not told, or another action.
  std::int64_t exchanged_bytes(const program::Action& action) { return calls_.bytes_of(action); }
  // What this rank holds of the action's micro-batch.
  const data::MicroBatch& batch_of(const program::Action& action) const {
    return batch(action.micro_batch);
  }

 private:
  void run(const program::Program& program, std::span<const data::MicroBatch> micro_batches);
  std::span<const data::MicroBatch> own_parts(std::span<const data::MicroBatch> micro_batches);
  data::ContextRanks context_ranks() const { return {architecture_.ring, architecture_.ulysses}; }
  void run_actions(const program::Program& program, const LaneQueue::Watcher& observe);
  void execute(const program::Action& action);
  void run_segment(const program::Action& action);
  void begin_call(const program::Action& action, Call& call);
  void begin_forward(const program::Action& action, Call& call);
  void begin_head(const program::Action& action, Call& call, const Tensor& x);
  void begin_recompute(const program::Action& action, Call& call);
  void begin_backward(const program::Action& action, Call& call);
  void end_call(const program::Action& action, Call& call);
  void end_forward(const program::Action& action, Call& call);
  Tensor logits_row(const Call& call) const;
  void end_backward(const program::Action& action, Call& call);
  void backward_weight(const program::Action& action);
  void send(const program::Action& action);
  void receive(const program::Action& action);
  void share_logits(int cp_rank);
  void unshard(const program::Action& action);
  void reduce(const program::Action& action);
  void complete_gradients(state::GroupBuffer& group);
  void sum_copies(const program::Action& action);
  void wait_for(const program::Action& action);
  void end_exchange(const program::Action& segment, const LaneQueue::Watcher& observe);
  void set_context(const program::Action& action, Call& call);
  comm::Communicator& ranks_of(const program::Action& exchange);
  const data::MicroBatch& batch(int micro_batch) const;
  std::int64_t stream_rows(int micro_batch) const;
  const model::LayerSpec& spec_of(const program::Action& action) const;
  const layers::Layer& code_of(const program::Action& action) const;
  state::GroupBuffer& group_of(int parameter);

  const model::Architecture& architecture_;
  mesh::Layout layout_;
  std::vector<mesh::StageLayers> stages_;  // of a pipeline
  Communicators communicators_;
  Arena& arena_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::unique_ptr<Sharing> sharing_;
  GradientSums gradient_sums_;
  std::vector<state::GroupBuffer> groups_;
  Stashes stashes_;
  Streams activations_;
  Streams gradients_;
  std::int64_t vocabulary_;  // of the whole model
  GradientTargets targets_;
  QueuedProducts queued_;
  Calls calls_;
  LaneQueue gather_lane_;
  LaneQueue reduce_lane_;
  Transfers transfers_;
  std::optional<Offload> offload_;
  ActionObserver observer_;

  // Of the program that is running.
  std::span<const data::MicroBatch> micro_batches_;
  std::vector<data::MicroBatch> context_parts_;  // where ranks share rows
  const StepSettings* settings_ = nullptr;
  layers::LossSums sums_;
  StepResult result_;
  std::int64_t logits_position_ = -1;
  std::vector<double> logits_;
};

}  // namespace ptrain::execute
