#include "engine/execute/executor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/mesh/buffer_plan.h"
#include "core/program/segments.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/execute/action_points.h"

namespace ptrain::execute {
namespace {

using program::Action;
using program::Kind;
using program::Lane;

bool is_copy(const Action& action) {
  return action.kind == Kind::kFetch || action.kind == Kind::kOffload;
}

// Begins and ends when its lane says so.
bool is_queued(const Action& action) {
  return action.kind == Kind::kUnshard || action.kind == Kind::kReduceGrad || is_copy(action) ||
         program::sums_copies(action) || action.lane == Lane::kTransfer;
}

// In a pipeline they come from other ranks, or wait to be sent.
program::MemoryClass class_of_streams(const mesh::Layout& layout) {
  return layout.num_stages() > 1 ? program::MemoryClass::kCommunication
                                 : program::MemoryClass::kTemporary;
}

comm::Communicator* ranks_along(const Communicators& ranks, model::ExchangeAxis axis) {
  switch (axis) {
    case model::ExchangeAxis::kTensor:
      return ranks.tensor;
    case model::ExchangeAxis::kRing:
      return ranks.ring;
    case model::ExchangeAxis::kUlysses:
      return ranks.ulysses;
    case model::ExchangeAxis::kExperts:
      return ranks.experts;
    case model::ExchangeAxis::kRows:
      return ranks.rows;
    case model::ExchangeAxis::kVocabulary:
      return ranks.vocabulary;
  }
  return nullptr;
}

}  // namespace

Executor::Executor(const model::Architecture& architecture, const mesh::Layout& layout,
                   const Communicators& communicators, Arena& arena,
                   const state::StoreMaker& make_store)
    : architecture_(architecture),
      layout_(layout),
      stages_(value_or_throw(
          mesh::layers_of_stages(layout, static_cast<int>(architecture.layers.size())))),
      communicators_(communicators),
      arena_(arena),
      layers_(layers::make_layers(architecture)),
      sharing_(make_sharing({architecture, layout, communicators, arena})),
      gradient_sums_(architecture, communicators, *sharing_),
      stashes_(architecture, arena),
      activations_(architecture, arena, class_of_streams(layout)),
      gradients_(architecture, arena, class_of_streams(layout)),
      vocabulary_(layers::vocabulary_of(architecture)),
      targets_(architecture, groups_),
      transfers_(communicators.pipeline_forward, communicators.pipeline_backward) {
  const bool offloads = layout.offload == recipe::Offload::kOptimizer;
  const auto plans = mesh::plan_buffers(architecture, layout);
  for (const auto& plan : plans) {
    state::GroupBuffer::Place place = sharing_->place_of(plan.group);
    place.offloads_state = offloads;
    const auto& spec = architecture.groups[static_cast<std::size_t>(plan.group)];
    place.counts = mesh::is_first_replica(spec, layout, communicators.world.rank()) ||
                   (spec.experts && planted(Bug::kExpertsCountedTwice));
    groups_.emplace_back(architecture, plan, place, arena);
  }
  if (!offloads) return;
  const auto shards = mesh::shard_ranks_of(layout, communicators.world.rank());
  offload_.emplace(program::plan_offload(architecture, plans, shards), make_store, arena);
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
  const Arena::PeaksKept kept(arena_);
  run(program, micro_batches);
  std::array<double, 2> totals{sums_.loss, static_cast<double>(sums_.num_targets)};
  communicators_.world
      .all_reduce(reinterpret_cast<std::byte*>(totals.data()), DType::kFloat64, 2,
                  comm::ReduceOp::kSum)
      ->wait();
  layers::LossSums sums;
  sums.loss = totals[0];
  sums.num_targets = static_cast<std::int64_t>(totals[1]);
  return sums;
}

std::vector<double> Executor::logits(const program::Program& program,
                                     const data::MicroBatch& micro_batch, std::int64_t position) {
  const data::TokenPlace place = data::place_of_token(micro_batch, context_ranks(), position);
  const int cp_rank = mesh::coordinates_of(layout_, communicators_.world.rank()).cp;
  logits_position_ = cp_rank == place.cp_rank ? place.token : 0;
  const Arena::PeaksKept kept(arena_);
  run(program, {&micro_batch, 1});
  logits_position_ = -1;
  share_logits(place.cp_rank);
  return std::exchange(logits_, {});
}

// The last stage made them; of the ranks that share rows the one that holds the token. Of replicas
// one speaks for all: processors of unlike kinds may round the last bit in their own ways.
void Executor::share_logits(int cp_rank) {
  if (communicators_.world.size() == 1) return;
  mesh::Coordinates maker;
  maker.cp = cp_rank;
  maker.pp = value_or_throw(mesh::ranks_of_stages(layout_)).back();
  const std::int64_t vocabulary = architecture_.config.vocab_size * layout_.tp;
  logits_.resize(static_cast<std::size_t>(vocabulary));
  communicators_.world
      .broadcast(reinterpret_cast<std::byte*>(logits_.data()),
                 vocabulary * size_of(DType::kFloat64), mesh::rank_of(layout_, maker))
      ->wait();
}

void Executor::run(const program::Program& program,
                   std::span<const data::MicroBatch> micro_batches) {
  fault::point("train.program");
  micro_batches_ = own_parts(micro_batches);
  sums_ = {};
  if (const auto count = std::ranges::count_if(architecture_.groups, &model::GroupSpec::experts))
    sums_.routers.begin(count, architecture_.decoder.moe.num_experts);
  result_ = {};
  sharing_->begin_program();
  const auto observe = [&](int id, bool begins) {
    if (observer_) observer_(program.actions[static_cast<std::size_t>(id)], begins);
  };
  gather_lane_.watch(observe);
  reduce_lane_.watch(observe);
  transfers_.watch(observe);
  if (offload_) offload_->lane().watch(observe);
  try {
    run_actions(program, observe);
  } catch (...) {
    if (offload_) offload_->lane().drop();  // it tells the observer, which may be gone soon
    throw;
  }
}

std::span<const data::MicroBatch> Executor::own_parts(
    std::span<const data::MicroBatch> micro_batches) {
  if (layout_.cp == 1) return micro_batches;
  context_parts_.clear();
  for (const data::MicroBatch& whole : micro_batches)
    context_parts_.push_back(data::context_part(whole, context_ranks()));
  return context_parts_;
}

void Executor::run_actions(const program::Program& program, const LaneQueue::Watcher& observe) {
  for (const Action& action : program.actions) {
    const auto points = points_of(action, architecture_);
    if (points) fault::point(points->begin);
    wait_for(action);
    end_exchange(action, observe);
    if (!is_queued(action)) observe(action.id, true);
    execute(action);
    if (!is_queued(action) && !program::exchanges_within_call(action)) observe(action.id, false);
    if (points) fault::point(points->end);
    gather_lane_.poll();
    reduce_lane_.poll();
    transfers_.poll();
  }
  PT_CHECK(calls_.empty() && queued_.empty());
  gather_lane_.wait_all();
  reduce_lane_.wait_all();
  transfers_.wait_all();
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
    // What another rank takes long to send: gathers and reductions of this one start meanwhile.
    transfers_.wait(id, [this] {
      gather_lane_.poll();
      reduce_lane_.poll();
    });
    // Copies wait for each other by their order.
    if (offload_ && !is_copy(action)) offload_->lane().wait(id);
  }
}

void Executor::execute(const Action& action) {
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kRecompute:
    case Kind::kBackward:
    case Kind::kBackwardInput:
      return run_segment(action);
    case Kind::kBackwardWeight:
      return backward_weight(action);
    case Kind::kSendForward:
    case Kind::kSendBackward:
      return send(action);
    case Kind::kReceiveForward:
    case Kind::kReceiveBackward:
      return receive(action);
    case Kind::kExchange:
      return program::sums_copies(action) ? sum_copies(action)
                                          : calls_.exchange(action, ranks_of(action));
    case Kind::kSyncTied:
      return sum_copies(action);
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
      for (auto& group : groups_) complete_gradients(group);
      if (planted(Bug::kTargetsOfWholeRows)) sums_.num_targets *= layout_.cp;
      result_ = reduce_norm(groups_, sums_, settings_->clip_norm, communicators_.world);
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
  comm::Communicator* ranks = axis ? ranks_along(communicators_, *axis) : nullptr;
  if (ranks == nullptr)
    throw EngineError(ExitCode::kBug, "no ranks for " + program::to_text(exchange));
  return *ranks;
}

void Executor::send(const Action& action) {
  const mesh::StageLayers& layers = stages_[static_cast<std::size_t>(action.stage)];
  const std::int64_t bytes = activations_.bytes(stream_rows(action.micro_batch));
  transfers_.send(action,
                  action.kind == Kind::kSendForward
                      ? activations_.take(layers.end, action.micro_batch)
                      : gradients_.take(layers.begin - 1, action.micro_batch),
                  bytes);
}

void Executor::receive(const Action& action) {
  const mesh::StageLayers& layers = stages_[static_cast<std::size_t>(action.stage)];
  const std::int64_t rows = stream_rows(action.micro_batch);
  const Tensor stream = action.kind == Kind::kReceiveForward
                            ? activations_.get(layers.begin, action.micro_batch, rows)
                            : gradients_.get(layers.end - 1, action.micro_batch, rows);
  transfers_.receive(action, stream.data, activations_.bytes(rows));
}

void Executor::unshard(const Action& action) {
  auto& group = groups_[static_cast<std::size_t>(action.group)];
  gather_lane_.push(action.id, sharing_->gather(group), {});
}

// What no backward writes has no gradient. Where there is a reduction, that has seen to it.
void Executor::complete_gradients(state::GroupBuffer& group) {
  const auto& spec = architecture_.groups[static_cast<std::size_t>(group.plan().group)];
  if (mesh::num_reduced(spec, layout_) == 1) group.fill_gradients();
}

void Executor::sum_copies(const Action& action) {
  auto& group = groups_[static_cast<std::size_t>(action.group)];
  complete_gradients(group);
  reduce_lane_.push(action.id,
                    action.kind == Kind::kSyncTied ? gradient_sums_.over_pipeline(group)
                                                   : gradient_sums_.over_tensor_ranks(group),
                    [] {});
}

void Executor::reduce(const Action& action) {
  auto& group = groups_[static_cast<std::size_t>(action.group)];
  group.fill_gradients();
  reduce_lane_.push(action.id, sharing_->reduce(group, action.attribute("axis") != "shard"),
                    [&group] { group.take_reduced(); });
}

}  // namespace ptrain::execute
