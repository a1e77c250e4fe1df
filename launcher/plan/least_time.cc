#include "launcher/plan/least_time.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/mesh/group_mesh.h"
#include "core/program/keep.h"
#include "core/program/segments.h"
#include "launcher/plan/schedules.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using program::Action;
using program::Kind;
using recipe::Recompute;

Action action_of(Kind kind) {
  Action action;
  action.kind = kind;
  return action;
}

Action of_group(Kind kind, int group) {
  Action action = action_of(kind);
  action.group = group;
  return action;
}

Action with(Action action, std::string key, std::string_view value) {
  action.attributes.emplace_back(std::move(key), std::string(value));
  return action;
}

Action exchange(const model::ExchangeSpec& spec, int layer) {
  Action action = action_of(Kind::kExchange);
  action.layer_first = action.layer_last = layer;
  action = with(std::move(action), "kind", to_string(spec.kind));
  action = with(std::move(action), "axis", to_string(spec.axis));
  return with(std::move(action), "token_bytes", std::to_string(spec.bytes_per_token));
}

bool is_block(const model::Architecture& part, int layer) {
  return part.layers[static_cast<std::size_t>(layer)].kind == model::LayerKind::kBlock;
}

// Whether each rank ends with the whole backward of a stage, as far as is known.
bool ends_with_backward(const Layout& layout) {
  const PlannedSchedule* planned = find_planned(layout.schedule);
  return layout.num_stages() == 1 || (planned != nullptr && planned->ends_with_backward);
}

}  // namespace

// What lies on one rank of the pipeline.
struct LeastTime::Rank {
  double start_s = 0, tail_s = 0;  // before its first forward, after its last backward
  double compute_s = 0, shift_s = 0, gather_s = 0, send_s = 0, optimizer_s = 0;
  double reduce_s = 0, reduce_last_s = 0;  // all, and what only follows the last micro-batch
  double last_backward_s = 0, largest_gather_s = 0;
  bool has_stage = false;
};

LeastTime::LeastTime(const SearchInput& input, Cuts& cuts, Pipelines& pipelines)
    : input_(input), cuts_(cuts), pipelines_(pipelines) {}

CostContext LeastTime::context_of(const Layout& layout, const model::Architecture& part,
                                  std::span<const mesh::BufferPlan> buffers) const {
  return {part,
          layout,
          buffers,
          input_.cluster.figures,
          input_.cluster.link,
          input_.placement,
          input_.shape.sequence,
          input_.attention};
}

LeastTime::Pass LeastTime::pass_of(Action action, int layer, const CostContext& context) const {
  action.layer_first = action.layer_last = layer;
  const auto exchanges = program::exchanges_of(action, context.architecture);
  if (!exchanges.empty()) action.segment = 0;
  Pass pass;
  pass.num_actions = static_cast<double>(2 * exchanges.size() + 1);
  pass.compute_s =
      static_cast<double>(exchanges.size() + 1) * action_seconds(action, context);  // all alike
  for (const model::ExchangeSpec& spec : exchanges) {
    const double seconds = action_seconds(exchange(spec, layer), context);
    (spec.kind == model::ExchangeKind::kShift ? pass.shift_s : pass.compute_s) += seconds;
  }
  return pass;
}

LeastTime::Work LeastTime::work_of(int layer, const CostContext& context) const {
  Work work;
  work.forward = pass_of(with(action_of(Kind::kForward), "keep", "all"), layer, context);
  work.backward = pass_of(action_of(Kind::kBackward), layer, context);
  if (!is_block(context.architecture, layer)) return work;
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    const auto from = to_string(program::keep_of(recompute));
    work.again[static_cast<std::size_t>(recompute)] =
        pass_of(with(action_of(Kind::kRecompute), "from", from), layer, context);
  }
  return work;
}

Result<const std::vector<LeastTime::Work>*> LeastTime::works_of(Layout layout, std::int64_t rows) {
  const WorkKey key{layout.tp, layout.cp, layout.ulysses, layout.ep, layout.etp, rows};
  if (const auto found = works_.find(key); found != works_.end()) return &found->second;
  PTRAIN_TRY(const model::Architecture* part, cuts_.work_of(layout));
  layout.micro_batch = rows;
  const CostContext context = context_of(layout, *part, {});
  std::vector<Work>& works = works_[key];
  for (int layer = 0; layer < std::ssize(part->layers); ++layer)
    works.push_back(work_of(layer, context));
  return &works;
}

LeastTime::Upkeep LeastTime::upkeep_of(int layer, const CostContext& context) const {
  Upkeep upkeep;
  upkeep.is_block = is_block(context.architecture, layer);
  for (const int group : cuts_.groups_of(layer)) {
    const auto& spec = context.architecture.groups[static_cast<std::size_t>(group)];
    const Action reduce = of_group(Kind::kReduceGrad, group);
    upkeep.gather_s += action_seconds(of_group(Kind::kUnshard, group), context);
    upkeep.optimizer_s += action_seconds(of_group(Kind::kOptimizer, group), context);
    if (mesh::num_reduced(spec, context.layout) == 1) continue;
    upkeep.reduce_last_s += action_seconds(reduce, context);
    if (mesh::shards_gradients(spec, context.layout))
      upkeep.reduce_each_s += action_seconds(with(reduce, "axis", "shard"), context);
  }
  return upkeep;
}

Result<const LeastTime::State*> LeastTime::state_of(const Layout& layout) {
  const StateKey key{layout.tp,
                     layout.ep,
                     layout.etp,
                     layout.num_shards(),
                     layout.dp,
                     layout.shared_window ? 1 : 0,
                     layout.zero > 1 ? 1 : 0};
  if (const auto found = states_.find(key); found != states_.end()) return &found->second;
  PTRAIN_TRY(const CutState* cut, cuts_.state_of(layout));
  const CostContext context = context_of(layout, cut->part, cut->buffers);
  State& state = states_[key];
  for (int layer = 0; layer < std::ssize(cut->part.layers); ++layer)
    state.layers.push_back(upkeep_of(layer, context));
  state.norm_s = action_seconds(action_of(Kind::kGradNorm), context);
  return &state;
}

LeastTime::Stage LeastTime::stage_of(const StageKinds& kinds, Recompute recompute,
                                     const Layers& of) const {
  Stage stage;
  double blocks_s = 0, first_again_s = 0;
  for (std::size_t like = 0; like < kinds.num_like.size(); ++like) {
    if (kinds.num_like[like] == 0) continue;
    const double times = kinds.num_like[like];
    const Work &work = of.works[like], &fill = of.fills[like];
    const Upkeep& upkeep = of.upkeep[like];
    const Pass &again = work.again[static_cast<std::size_t>(recompute)],
               &fill_again = fill.again[static_cast<std::size_t>(recompute)];
    stage.forward.add(work.forward, times);
    stage.backward.add(work.backward, times);
    stage.backward.add(again, times);
    stage.fill_s += times * fill.forward.compute_s;
    stage.drain_s += times * (fill.backward.compute_s + fill_again.compute_s);
    first_again_s = std::max(first_again_s, fill_again.compute_s);
    stage.gather_s += times * upkeep.gather_s;
    stage.largest_gather_s = std::max(stage.largest_gather_s, upkeep.gather_s);
    stage.optimizer_s += times * upkeep.optimizer_s;
    stage.reduce_each_s += times * upkeep.reduce_each_s;
    stage.reduce_last_s += times * upkeep.reduce_last_s;
    if (upkeep.is_block) blocks_s += times * upkeep.gather_s;
  }
  stage.drain_s -= first_again_s;  // that may be done before the gradient has come
  // Where it gathers again and again: a pass finds open at most what the window of the one before
  // it left.
  const double open_s = (of.layout.prefetch + 2) * stage.largest_gather_s;
  const double passes = 2 * static_cast<double>(of.layout.num_micro_batches);
  if (of.layout.zero == 3) stage.gather_s = std::max(stage.gather_s, passes * (blocks_s - open_s));
  return stage;
}

// Before GRAD_NORM.
double LeastTime::busy_s(const Layout& layout, const Rank& rank) const {
  const double end_s = rank.start_s + rank.compute_s;
  if (!input_.placement.overlaps) {
    // What is gathered before the first forward may be while it is waited for.
    const double gathered_s =
        layout.pp == 1
            ? rank.gather_s
            : std::max(0.0, rank.gather_s - (layout.prefetch + 2) * rank.largest_gather_s);
    return end_s + rank.shift_s + gathered_s + rank.send_s + rank.reduce_s - rank.reduce_last_s +
           std::max(rank.reduce_last_s, rank.tail_s);
  }
  double most_s =
      std::max({end_s + rank.tail_s, rank.gather_s + rank.shift_s, rank.send_s, rank.reduce_s});
  if (layout.num_virtual == 1 && ends_with_backward(layout))
    most_s = std::max(most_s, end_s - rank.last_backward_s + rank.reduce_last_s);
  return most_s;
}

// What a stage adds to its rank, behind stages that take so long to fill and to drain.
void LeastTime::add_stage(const Stage& stage, const Layout& layout, Rank& rank) const {
  const auto count = static_cast<double>(layout.num_micro_batches);
  Pass both = stage.forward;
  both.add(stage.backward, 1);
  rank.compute_s += count * both.compute_s;
  rank.shift_s += count * both.shift_s;
  rank.gather_s += stage.gather_s;
  rank.largest_gather_s = std::max(rank.largest_gather_s, stage.largest_gather_s);
  rank.optimizer_s += stage.optimizer_s;
  rank.reduce_s += (count - 1) * stage.reduce_each_s + stage.reduce_last_s;
  rank.reduce_last_s += stage.reduce_last_s;
  rank.last_backward_s += stage.backward.compute_s;
}

std::vector<LeastTime::Rank> LeastTime::ranks_of(const std::vector<StageKinds>& stages,
                                                 const Layers& of, double send_s) const {
  std::vector<Rank> ranks(static_cast<std::size_t>(of.layout.pp));
  double fill_s = 0, drain_s = 0;  // of the stages before
  const auto streams = static_cast<double>(of.layout.num_micro_batches);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage stage = stage_of(stages[s], of.layout.recompute_of(static_cast<int>(s)), of);
    Rank& rank = ranks[static_cast<std::size_t>(stages[s].rank)];
    if (!rank.has_stage) {
      rank.has_stage = true;
      rank.start_s = fill_s;
      rank.tail_s = ends_with_backward(of.layout) ? drain_s : 0;
    }
    add_stage(stage, of.layout, rank);
    fill_s += stage.fill_s;
    drain_s += stage.drain_s;
    if (s + 1 == stages.size() || stages[s + 1].rank == stages[s].rank) continue;
    rank.send_s += streams * send_s;  // forwards; backwards are the next stage's
    ranks[static_cast<std::size_t>(stages[s + 1].rank)].send_s += streams * send_s;
  }
  return ranks;
}

double LeastTime::of_all_from(const Layout& layout, std::int64_t rows) {
  // A sample has one dtype; and whoever compiles a layout that cannot be says why.
  const std::vector<StageKinds>& stages = pipelines_.of(layout);
  const auto works = works_of(layout, layout.micro_batch), fills = works_of(layout, rows);
  const auto state = state_of(layout);
  if (stages.empty() || !works || !fills || !state || !layout.layer_dtypes.empty()) return 0;
  const Layers of{layout, **works, **fills, (*state)->layers};
  const double send_s =
      action_seconds(action_of(Kind::kSendForward), context_of(layout, input_.architecture, {}));
  double end_s = 0, optimizer_s = 0;
  for (const Rank& rank : ranks_of(stages, of, send_s)) {
    end_s = std::max(end_s, busy_s(layout, rank));
    optimizer_s = std::max(optimizer_s, rank.optimizer_s);
  }
  return end_s + (*state)->norm_s + optimizer_s;
}

double LeastTime::num_actions(const Layout& layout) {
  // Of a stage: what it receives and sends. Of a layer: a gradient of weights by itself; what
  // gathers parameters, gives them back and reduces gradients, with each micro-batch.
  constexpr double kOfStage = 4, kOfWeights = 1, kOfGathers = 5;
  const auto works = works_of(layout, layout.micro_batch);
  if (!works) return 0;
  const double more =
      (ends_with_backward(layout) ? 0 : kOfWeights) + (layout.gathers_each_use() ? kOfGathers : 0);
  double num_actions = 0;
  const std::vector<StageKinds>& stages = pipelines_.of(layout);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto recompute = static_cast<std::size_t>(layout.recompute_of(static_cast<int>(s)));
    Pass pass;
    for (std::size_t like = 0; like < stages[s].num_like.size(); ++like) {
      const Work& work = (**works)[like];
      for (const Pass& one : {work.forward, work.backward, work.again[recompute]})
        pass.add(one, stages[s].num_like[like]);
      num_actions += more * stages[s].num_like[like];
    }
    num_actions += pass.num_actions + kOfStage;
  }
  // On each rank three actions of a look-up, and of its gradient; those of a head's S.
  constexpr double kOfShare = 6;
  const int num_shared = (layout.spread_embedding ? 1 : 0) + (layout.spread_head ? 1 : 0);
  num_actions += kOfShare * num_shared * layout.pp;
  return num_actions * static_cast<double>(layout.num_micro_batches);
}

double LeastTime::of(const Layout& layout) { return of_all_from(layout, layout.micro_batch); }

}  // namespace ptrain::plan
