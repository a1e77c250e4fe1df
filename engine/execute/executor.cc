#include "engine/execute/executor.h"

#include <array>
#include <utility>

#include "core/mesh/buffer_plan.h"
#include "core/program/reads.h"
#include "core/program/segments.h"
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

// Of a layer's call; ends when the segment behind it begins.
bool is_exchange(const Action& action) {
  return action.kind == Kind::kExchange && action.layer_first >= 0;
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
      gradients_(architecture, arena),
      vocabulary_(layers::vocabulary_of(architecture)) {
  const bool offloads = layout.offload == recipe::Offload::kOptimizer;
  const auto plans = mesh::plan_buffers(architecture, layout);
  for (const auto& plan : plans) {
    state::GroupBuffer::Place place = sharing_->place_of(plan.group);
    place.offloads_state = offloads;
    groups_.emplace_back(architecture, plan, place, arena);
  }
  if (!offloads) return;
  const int shard = mesh::coordinates_of(layout, communicators.world.rank()).shard_rank(layout);
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
    if (!is_exchange(action)) end_exchange(action, observe);
    if (!is_queued(action)) observe(action.id, true);
    execute(action);
    if (!is_queued(action) && !is_exchange(action)) observe(action.id, false);
    fault::point(points.end);
    gather_lane_.poll();
    reduce_lane_.poll();
  }
  PT_CHECK(calls_.empty());
  gather_lane_.wait_all();
  reduce_lane_.wait_all();
  if (offload_) offload_->lane().wait_all();
}

void Executor::end_exchange(const Action& segment, const LaneQueue::Watcher& observe) {
  if (segment.segment < 0) return;
  if (const int exchange = calls_.wait_before(segment); exchange >= 0) observe(exchange, false);
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
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kRecompute:
    case Kind::kBackward:
      return run_segment(action);
    case Kind::kExchange:
      return calls_.exchange(action, ranks_of(action));
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

std::int64_t Executor::stream_rows(int micro_batch) const {
  return architecture_.stream_rows(batch(micro_batch).num_tokens());
}

const model::LayerSpec& Executor::spec_of(const Action& action) const {
  return architecture_.layers[static_cast<std::size_t>(action.layer_first)];
}

const layers::Layer& Executor::code_of(const Action& action) const {
  return *layers_[static_cast<std::size_t>(action.layer_first)];
}

comm::Communicator& Executor::ranks_of(const Action& exchange) {
  const auto axis = model::exchange_axis_named(exchange.attribute("axis"));
  comm::Communicator* ranks =
      axis == model::ExchangeAxis::kTensor ? communicators_.tensor : nullptr;
  if (ranks == nullptr)
    throw EngineError(ExitCode::kBug, "no ranks for " + program::to_text(exchange));
  return *ranks;
}

// Without views of parameters where the action reads none: they need not be whole then.
void Executor::set_context(const Action& action, Call& call) {
  if (!program::groups_read(action, architecture_).empty())
    for (const int parameter : spec_of(action).parameters)
      call.parameters.push_back(group_of(parameter).parameter(parameter));
  call.context.emplace(layers::Context{batch(action.micro_batch), arena_, call.parameters,
                                       stashes_.views(action.layer_first, action.micro_batch),
                                       communicators_.tensor});
}

void Executor::run_segment(const Action& action) {
  if (program::begins_call(action)) begin_call(action, calls_.begin(action));
  if (!calls_.resume(action)) return;
  end_call(action, calls_.at(action));
  calls_.end(action);
}

void Executor::begin_call(const Action& action, Call& call) {
  switch (action.kind) {
    case Kind::kForward:
      return begin_forward(action, call);
    case Kind::kRecompute:
      return begin_recompute(action, call);
    default:
      return begin_backward(action, call);
  }
}

void Executor::end_call(const Action& action, Call& call) {
  if (action.kind == Kind::kForward) return end_forward(action, call);
  if (action.kind == Kind::kBackward) return end_backward(action, call);
}

void Executor::begin_forward(const Action& action, Call& call) {
  const auto kind = spec_of(action).kind;
  const int micro_batch = action.micro_batch;
  stashes_.take(action.layer_first, micro_batch, batch(micro_batch).num_tokens(),
                keep_in(action, "keep"));
  set_context(action, call);
  const std::int64_t rows = stream_rows(micro_batch);
  const Tensor x =
      kind == model::LayerKind::kEmbedding ? Tensor{} : activations_.get(micro_batch, rows);
  if (kind == model::LayerKind::kHead) return begin_head(action, call, x);
  call.output = activations_.fresh(rows);
  call.task.emplace(
      code_of(action).forward(*call.context, x, activations_.view(call.output, rows)));
}

// With a stash the head only keeps its input: loss and gradient are made together in its backward.
void Executor::begin_head(const Action& action, Call& call, const Tensor& x) {
  const layers::Layer& head = code_of(action);
  if (keep_in(action, "keep") != Keep::kNone) {
    call.task.emplace(head.forward(*call.context, x, Tensor{}));
  } else if (logits_position_ >= 0) {
    call.output = Buffer(arena_, program::MemoryClass::kTemporary,
                         vocabulary_ * size_of(architecture_.dtype));
    call.task.emplace(head.logits(*call.context, x, logits_position_, logits_row(call)));
  } else {
    call.task.emplace(head.loss(*call.context, x, sums_));
  }
}

Tensor Executor::logits_row(const Call& call) const {
  return contiguous(call.output.data(), architecture_.dtype, 1, vocabulary_);
}

void Executor::end_forward(const Action& action, Call& call) {
  if (spec_of(action).kind != model::LayerKind::kHead)
    return activations_.replace(action.micro_batch, std::move(call.output));
  activations_.give(action.micro_batch);
  if (!call.output) return;
  device::synchronize();
  const Tensor row = logits_row(call);
  dispatch(row.dtype, [&](auto zero) {
    const auto* values = row.as<decltype(zero)>();
    logits_.assign(values, values + row.cols);
  });
}

void Executor::begin_recompute(const Action& action, Call& call) {
  stashes_.complete(action.layer_first, action.micro_batch, batch(action.micro_batch).num_tokens());
  set_context(action, call);
  if (keep_in(action, "from") == Keep::kInput) {
    call.task.emplace(code_of(action).recompute(*call.context));
  } else {
    call.task.emplace(code_of(action).remake(*call.context));
  }
}

void Executor::begin_backward(const Action& action, Call& call) {
  const auto& spec = spec_of(action);
  for (const int group : spec.groups) sharing_->begin_write(group);
  const bool lost = planted(Bug::kTiedGradientLost) && architecture_.config.tie_word_embeddings &&
                    spec.kind == model::LayerKind::kEmbedding;
  const bool adds =
      action.attribute("accumulate") == "1" && !lost && !planted(Bug::kOverwrittenGradient);
  for (const int parameter : spec.parameters)
    call.targets.push_back({group_of(parameter).gradient(parameter), adds});
  set_context(action, call);
  const Tensor dy = gradients_.get(action.micro_batch, stream_rows(action.micro_batch));
  call.task.emplace(code_of(action).backward_input(*call.context, call.targets, dy, call.products,
                                                   call.scratch, sums_));
}

void Executor::end_backward(const Action& action, Call& call) {
  layers::backward_weight(call.products);
  const int layer = action.layer_first;
  stashes_.give(planted(Bug::kStashKept) ? layer + 1 : layer, action.micro_batch);
  if (spec_of(action).kind == model::LayerKind::kEmbedding) gradients_.give(action.micro_batch);
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
