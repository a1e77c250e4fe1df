#include "engine/execute/executor.h"

#include <array>
#include <utility>

#include "core/mesh/buffer_plan.h"
#include "core/program/reads.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/execute/action_points.h"

namespace ptrain::execute {
namespace {

using program::Action;
using program::Keep;
using program::Kind;
using program::Lane;

Keep keep_in(const Action& action, std::string_view attribute) {
  const auto keep = program::keep_named(action.attribute(attribute));
  PT_CHECK(keep.has_value());
  return *keep;
}

bool is_copy(const Action& action) {
  return action.kind == Kind::kFetch || action.kind == Kind::kOffload;
}

// Begins and ends when its lane says so.
bool is_queued(const Action& action) {
  return action.kind == Kind::kUnshard || action.kind == Kind::kReduceGrad || is_copy(action);
}

}  // namespace

Executor::Executor(const model::Architecture& architecture, const mesh::Layout& layout,
                   const Communicators& communicators, Arena& arena,
                   const state::StoreMaker& make_store)
    : architecture_(architecture),
      communicators_(communicators),
      arena_(arena),
      layers_(layers::make_layers(architecture)),
      sharing_(make_sharing({architecture, layout, communicators, arena})),
      stashes_(architecture, arena),
      activations_(architecture, arena),
      gradients_(architecture, arena) {
  const bool offloads = layout.offload == recipe::Offload::kOptimizer;
  const auto plans = mesh::plan_buffers(architecture, layout.shard);
  for (const auto& plan : plans) {
    state::GroupBuffer::Place place = sharing_->place_of(plan.group);
    place.offloads_state = offloads;
    groups_.emplace_back(architecture, plan, place, arena);
  }
  if (!offloads) return;
  const int shard = mesh::coordinates_of(layout, communicators.world.rank()).shard;
  offload_.emplace(program::plan_offload(architecture, plans, shard), make_store, arena);
}

void Executor::close() { sharing_->close(); }

StepResult Executor::train(const program::Program& program,
                           std::span<const data::MicroBatch> micro_batches,
                           const StepSettings& settings) {
  settings_ = &settings;
  run(program, micro_batches);
  settings_ = nullptr;
  return result_;
}

layers::LossSums Executor::evaluate(const program::Program& program,
                                    std::span<const data::MicroBatch> micro_batches) {
  run(program, micro_batches);
  std::array<double, 2> totals{sums_.loss, static_cast<double>(sums_.num_targets)};
  communicators_.world
      .all_reduce(reinterpret_cast<std::byte*>(totals.data()), DType::kFloat64, 2,
                  comm::ReduceOp::kSum)
      ->wait();
  return {totals[0], static_cast<std::int64_t>(totals[1])};
}

std::vector<double> Executor::logits(const program::Program& program,
                                     const data::MicroBatch& micro_batch, std::int64_t position) {
  logits_position_ = position;
  run(program, {&micro_batch, 1});
  logits_position_ = -1;
  return std::exchange(logits_, {});
}

void Executor::run(const program::Program& program,
                   std::span<const data::MicroBatch> micro_batches) {
  fault::point("train.program");
  micro_batches_ = micro_batches;
  sums_ = {};
  result_ = {};
  sharing_->begin_program();
  const auto observe = [&](int id, bool begins) {
    if (observer_) observer_(program.actions[static_cast<std::size_t>(id)], begins);
  };
  gather_lane_.watch(observe);
  reduce_lane_.watch(observe);
  if (offload_) offload_->lane().watch(observe);
  try {
    run_actions(program, observe);
  } catch (...) {
    if (offload_) offload_->lane().drop();  // it tells the observer, which may be gone soon
    throw;
  }
}

void Executor::run_actions(const program::Program& program, const LaneQueue::Watcher& observe) {
  for (const Action& action : program.actions) {
    const ActionPoints points = points_of(action, architecture_);
    fault::point(points.begin);
    wait_for(action);
    if (!is_queued(action)) observe(action.id, true);
    execute(action);
    if (!is_queued(action)) observe(action.id, false);
    fault::point(points.end);
    gather_lane_.poll();
    reduce_lane_.poll();
  }
  gather_lane_.wait_all();
  reduce_lane_.wait_all();
  if (offload_) offload_->lane().wait_all();
}

void Executor::wait_for(const Action& action) {
  for (const int id : action.after) {
    gather_lane_.wait(id);
    reduce_lane_.wait(id);
    // Copies wait for each other by their order.
    if (offload_ && !is_copy(action)) offload_->lane().wait(id);
  }
}

void Executor::execute(const Action& action) {
  auto each_layer = [&](auto run_layer) {
    for (int layer = action.layer_first; layer <= action.layer_last; ++layer)
      (this->*run_layer)(action, layer);
  };
  switch (action.kind) {
    case Kind::kForward:
      return each_layer(&Executor::forward);
    case Kind::kRecompute:
      return each_layer(&Executor::recompute);
    case Kind::kBackward:
      for (int layer = action.layer_last; layer >= action.layer_first; --layer)
        backward(action, layer);
      return;
    case Kind::kUnshard:
      return unshard(action);
    case Kind::kReshard:
      return groups_[static_cast<std::size_t>(action.group)].close_whole();
    case Kind::kReduceGrad:
      return reduce(action);
    case Kind::kFetch:
    case Kind::kOffload: {
      PT_CHECK(offload_.has_value());
      auto& group = groups_[static_cast<std::size_t>(action.group)];
      return action.kind == Kind::kFetch ? offload_->fetch(action, group)
                                         : offload_->offload(action, group);
    }
    case Kind::kGradNorm:
      PT_CHECK(settings_ != nullptr);
      result_ = reduce_norm(groups_, sums_, settings_->clip_norm, communicators_.shard_reduce,
                            communicators_.world);
      return;
    case Kind::kOptimizer:
      PT_CHECK(settings_ != nullptr);
      return apply_optimizer(architecture_, *settings_, result_,
                             groups_[static_cast<std::size_t>(action.group)]);
    default:
      throw EngineError(ExitCode::kBug, "the engine cannot run " + program::to_text(action));
  }
}

const data::MicroBatch& Executor::batch(int micro_batch) const {
  PT_CHECK(static_cast<std::size_t>(micro_batch) < micro_batches_.size());
  return micro_batches_[static_cast<std::size_t>(micro_batch)];
}

state::GroupBuffer& Executor::group_of(int parameter) {
  const int group = architecture_.parameters[static_cast<std::size_t>(parameter)].group;
  return groups_[static_cast<std::size_t>(group)];
}

// Without views of parameters where the action reads none: they need not be whole then.
layers::Context Executor::context(const Action& action, int layer) {
  parameter_views_.clear();
  if (!program::groups_read(action, architecture_).empty())
    for (const int parameter : architecture_.layers[static_cast<std::size_t>(layer)].parameters)
      parameter_views_.push_back(group_of(parameter).parameter(parameter));
  return {batch(action.micro_batch), arena_, parameter_views_,
          stashes_.views(layer, action.micro_batch)};
}

void Executor::forward(const Action& action, int layer) {
  const auto kind = architecture_.layers[static_cast<std::size_t>(layer)].kind;
  const std::int64_t num_tokens = batch(action.micro_batch).num_tokens();
  const Keep keep = keep_in(action, "keep");
  stashes_.take(layer, action.micro_batch, num_tokens, keep);
  const Tensor x = kind == model::LayerKind::kEmbedding
                       ? Tensor{}
                       : activations_.get(action.micro_batch, num_tokens);
  if (kind == model::LayerKind::kHead) return finish_head(action, layer, x, keep);
  Buffer next = activations_.fresh(num_tokens);
  layers_[static_cast<std::size_t>(layer)]->forward(context(action, layer), x,
                                                    activations_.view(next, num_tokens));
  activations_.replace(action.micro_batch, std::move(next));
}

// With a stash the head only keeps its input: loss and gradient are made together in its backward.
void Executor::finish_head(const Action& action, int layer, const Tensor& x, Keep keep) {
  const layers::Layer& head = *layers_[static_cast<std::size_t>(layer)];
  const layers::Context head_context = context(action, layer);
  if (keep != Keep::kNone) {
    head.forward(head_context, x, Tensor{});
  } else if (logits_position_ >= 0) {
    const std::int64_t vocabulary = architecture_.config.vocab_size;
    Buffer buffer(arena_, program::MemoryClass::kTemporary,
                  vocabulary * size_of(architecture_.dtype));
    const Tensor row = contiguous(buffer.data(), architecture_.dtype, 1, vocabulary);
    head.logits(head_context, x.row_range(logits_position_, 1), row);
    device::synchronize();
    dispatch(row.dtype, [&](auto zero) {
      const auto* values = row.as<decltype(zero)>();
      logits_.assign(values, values + vocabulary);
    });
  } else {
    head.loss(head_context, x, sums_);
  }
  activations_.give(action.micro_batch);
}

void Executor::recompute(const Action& action, int layer) {
  stashes_.complete(layer, action.micro_batch, batch(action.micro_batch).num_tokens());
  const layers::Layer& code = *layers_[static_cast<std::size_t>(layer)];
  if (keep_in(action, "from") == Keep::kInput) {
    code.recompute(context(action, layer));
  } else {
    code.remake(context(action, layer));
  }
}

void Executor::backward(const Action& action, int layer) {
  const auto& spec = architecture_.layers[static_cast<std::size_t>(layer)];
  for (const int group : spec.groups) sharing_->begin_write(group);
  const bool lost = planted(Bug::kTiedGradientLost) && architecture_.config.tie_word_embeddings &&
                    spec.kind == model::LayerKind::kEmbedding;
  const bool adds =
      action.attribute("accumulate") == "1" && !lost && !planted(Bug::kOverwrittenGradient);
  std::vector<layers::GradientTarget> targets;
  for (const int parameter : spec.parameters)
    targets.push_back({group_of(parameter).gradient(parameter), adds});
  std::vector<layers::WeightProduct> products;
  std::vector<Buffer> scratch;
  const Tensor dy = gradients_.get(action.micro_batch, batch(action.micro_batch).num_tokens());
  layers_[static_cast<std::size_t>(layer)]->backward_input(context(action, layer), targets, dy,
                                                           products, scratch, sums_);
  layers::backward_weight(products);
  stashes_.give(planted(Bug::kStashKept) ? layer + 1 : layer, action.micro_batch);
  if (spec.kind == model::LayerKind::kEmbedding) gradients_.give(action.micro_batch);
}

void Executor::unshard(const Action& action) {
  auto& group = groups_[static_cast<std::size_t>(action.group)];
  gather_lane_.push(action.id, sharing_->gather(group), {});
}

void Executor::reduce(const Action& action) {
  auto& group = groups_[static_cast<std::size_t>(action.group)];
  reduce_lane_.push(action.id, sharing_->reduce(group, action.attribute("axis") != "shard"),
                    [&group] { group.take_reduced(); });
}

}  // namespace ptrain::execute
