#include "launcher/plan/least_time.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/mesh/group_mesh.h"
#include "core/mesh/stages.h"
#include "core/program/keep.h"
#include "core/program/segments.h"

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

// Schedules whose ranks end with the whole backward of a stage; behind others weights' gradients
// may follow while earlier stages go on.
bool ends_with_backward(const Layout& layout) {
  return layout.num_stages() == 1 || layout.schedule == "1f1b" ||
         layout.schedule == "interleaved_1f1b";
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

LeastTime::LeastTime(const SearchInput& input, const CutSample& cut) : input_(input), cut_(cut) {}

CostContext LeastTime::context_of(const Layout& layout) const {
  return {cut_.part,           layout,           cut_.buffers,          input_.cluster.figures,
          input_.cluster.link, input_.placement, input_.shape.sequence, input_.attention};
}

LeastTime::Pass LeastTime::pass_of(Action action, int layer, const CostContext& context) const {
  action.layer_first = action.layer_last = layer;
  const auto exchanges = program::exchanges_of(action, cut_.part);
  if (!exchanges.empty()) action.segment = 0;
  Pass pass;
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
  if (cut_.part.layers[static_cast<std::size_t>(layer)].kind != model::LayerKind::kBlock)
    return work;
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    const auto from = to_string(program::keep_of(recompute));
    work.again[static_cast<std::size_t>(recompute)] =
        pass_of(with(action_of(Kind::kRecompute), "from", from), layer, context);
  }
  return work;
}

const std::vector<LeastTime::Work>& LeastTime::works_of(Layout layout, std::int64_t rows) {
  const auto [known, is_new] = works_.try_emplace(rows);
  if (!is_new) return known->second;
  layout.micro_batch = rows;
  const CostContext context = context_of(layout);
  for (int layer = 0; layer < static_cast<int>(cut_.part.layers.size()); ++layer)
    known->second.push_back(work_of(layer, context));
  return known->second;
}

std::vector<LeastTime::Upkeep> LeastTime::upkeep_of(const CostContext& context) const {
  std::vector<Upkeep> all;
  for (int layer = 0; layer < static_cast<int>(cut_.part.layers.size()); ++layer) {
    Upkeep& upkeep = all.emplace_back();
    upkeep.is_block =
        cut_.part.layers[static_cast<std::size_t>(layer)].kind == model::LayerKind::kBlock;
    for (const int group : cut_.groups_of(layer)) {
      const auto& spec = cut_.part.groups[static_cast<std::size_t>(group)];
      const Action reduce = of_group(Kind::kReduceGrad, group);
      upkeep.gather_s += action_seconds(of_group(Kind::kUnshard, group), context);
      upkeep.optimizer_s += action_seconds(of_group(Kind::kOptimizer, group), context);
      if (mesh::num_reduced(spec, context.layout) == 1) continue;
      upkeep.reduce_last_s += action_seconds(reduce, context);
      if (mesh::shards_gradients(spec, context.layout))
        upkeep.reduce_each_s += action_seconds(with(reduce, "axis", "shard"), context);
    }
  }
  return all;
}

void LeastTime::add_layer(Stage& stage, const Work& work, const Upkeep& upkeep,
                          Recompute recompute) const {
  stage.forward += work.forward;
  stage.backward += work.backward;
  stage.backward += work.again[static_cast<std::size_t>(recompute)];
  stage.gather_s += upkeep.gather_s;
  stage.largest_gather_s = std::max(stage.largest_gather_s, upkeep.gather_s);
  stage.optimizer_s += upkeep.optimizer_s;
  stage.reduce_each_s += upkeep.reduce_each_s;
  stage.reduce_last_s += upkeep.reduce_last_s;
}

LeastTime::Stage LeastTime::stage_of(const mesh::StageLayers& layers, Recompute recompute,
                                     const Layers& of) const {
  Stage stage;
  double blocks_s = 0, first_again_s = 0;
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    const auto like = static_cast<std::size_t>(cut_.likes[static_cast<std::size_t>(layer)]);
    add_layer(stage, of.works[like], of.upkeep[like], recompute);
    const Work& fill = of.fills[like];
    stage.fill_s += fill.forward.compute_s;
    stage.drain_s += fill.backward.compute_s;
    const double again_s = fill.again[static_cast<std::size_t>(recompute)].compute_s;
    stage.drain_s += again_s;
    first_again_s = std::max(first_again_s, again_s);
    if (of.upkeep[like].is_block) blocks_s += of.upkeep[like].gather_s;
  }
  stage.drain_s -= first_again_s;  // that may be done before the gradient has come
  // Where it gathers again and again: a pass finds open at most what the window of the one before
  // it left.
  const double open_s = (of.layout.prefetch + 2) * stage.largest_gather_s;
  const double passes = 2 * static_cast<double>(of.layout.num_micro_batches);
  if (of.layout.zero == 3) stage.gather_s = std::max(stage.gather_s, passes * (blocks_s - open_s));
  return stage;
}

Result<std::vector<LeastTime::Stage>> LeastTime::stages_of(const Layout& layout,
                                                           std::int64_t fill_rows) {
  PTRAIN_TRY(auto layers, mesh::layers_of_stages(layout, static_cast<int>(cut_.likes.size())));
  if (layout.spread_head) layers.back().end -= 1;  // a small part on each rank: left out
  PTRAIN_TRY(const auto ranks, mesh::ranks_of_stages(layout));
  const auto& works = works_of(layout, layout.micro_batch);
  const auto& fills = works_of(layout, fill_rows);
  const auto upkeep = upkeep_of(context_of(layout));
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    stages.push_back(stage_of(layers[s], layout.recompute_of(static_cast<int>(s)),
                              {layout, works, fills, upkeep}));
    stages.back().rank = ranks[s];
  }
  return stages;
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
  both += stage.backward;
  rank.compute_s += count * both.compute_s;
  rank.shift_s += count * both.shift_s;
  rank.gather_s += stage.gather_s;
  rank.largest_gather_s = std::max(rank.largest_gather_s, stage.largest_gather_s);
  rank.optimizer_s += stage.optimizer_s;
  rank.reduce_s += (count - 1) * stage.reduce_each_s + stage.reduce_last_s;
  rank.reduce_last_s += stage.reduce_last_s;
  rank.last_backward_s += stage.backward.compute_s;
}

std::vector<LeastTime::Rank> LeastTime::ranks_of(const std::vector<Stage>& stages,
                                                 const Layout& layout, double send_s) const {
  std::vector<Rank> ranks(static_cast<std::size_t>(layout.pp));
  double fill_s = 0, drain_s = 0;  // of the stages before
  const auto streams = static_cast<double>(layout.num_micro_batches);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Rank& rank = ranks[static_cast<std::size_t>(stages[s].rank)];
    if (!rank.has_stage) {
      rank.has_stage = true;
      rank.start_s = fill_s;
      rank.tail_s = ends_with_backward(layout) ? drain_s : 0;
    }
    add_stage(stages[s], layout, rank);
    fill_s += stages[s].fill_s;
    drain_s += stages[s].drain_s;
    if (s + 1 == stages.size() || stages[s + 1].rank == stages[s].rank) continue;
    rank.send_s += streams * send_s;  // forwards; backwards are the next stage's
    ranks[static_cast<std::size_t>(stages[s + 1].rank)].send_s += streams * send_s;
  }
  return ranks;
}

double LeastTime::of_all_from(const Layout& layout, std::int64_t rows) {
  // A sample has one dtype; and whoever compiles a layout that cannot be says why.
  const auto stages = stages_of(layout, rows);
  if (!stages || !layout.layer_dtypes.empty()) return 0;
  const CostContext context = context_of(layout);
  const double send_s = action_seconds(action_of(Kind::kSendForward), context);
  double end_s = 0, optimizer_s = 0;
  for (const Rank& rank : ranks_of(*stages, layout, send_s)) {
    end_s = std::max(end_s, busy_s(layout, rank));
    optimizer_s = std::max(optimizer_s, rank.optimizer_s);
  }
  return end_s + action_seconds(action_of(Kind::kGradNorm), context) + optimizer_s;
}

double LeastTime::of(const Layout& layout) { return of_all_from(layout, layout.micro_batch); }

}  // namespace ptrain::plan
