#include "core/program/pipeline.h"

#include <fmt/format.h>

#include <utility>

#include "core/schedule/catalogue.h"
#include "core/schedule/shared_work.h"

namespace ptrain::program {
namespace {

using schedule::Cell;
using schedule::Schedule;
using schedule::Work;

Schedule one_stage(int num_micro_batches) {
  Schedule schedule{.num_micro_batches = num_micro_batches, .ranks = {{}}};
  for (int m = 0; m < num_micro_batches; ++m)
    for (const Work work : {Work::kForward, Work::kBackward})
      schedule.ranks.front().push_back({.work = work, .stage = 0, .micro_batch = m});
  return schedule;
}

// Every rank takes the same order of all cells, so none waits for a later one.
Schedule forward_only(const mesh::Layout& layout, const std::vector<int>& ranks) {
  Schedule schedule{.num_stages = layout.num_stages(),
                    .num_micro_batches = static_cast<int>(layout.num_micro_batches),
                    .ranks = {}};
  schedule.ranks.resize(static_cast<std::size_t>(layout.pp));
  for (int m = 0; m < schedule.num_micro_batches; ++m)
    for (int stage = 0; stage < schedule.num_stages; ++stage) {
      const auto rank = static_cast<std::size_t>(ranks[static_cast<std::size_t>(stage)]);
      schedule.ranks[rank].push_back({.stage = stage, .micro_batch = m});
    }
  return schedule;
}

Status check_count(const Schedule& schedule, const mesh::Layout& layout) {
  if (schedule.num_micro_batches == layout.num_micro_batches) return {};
  return fail(ExitCode::kUsage,
              fmt::format("the schedule's file has {} micro-batches, but a step {} of each rank",
                          schedule.num_micro_batches, layout.num_micro_batches),
              "choose dp, shard, micro_batch and global_batch_tokens so that they agree");
}

Result<Schedule> by_name(const mesh::Layout& layout) {
  if (layout.num_stages() == 1) return one_stage(static_cast<int>(layout.num_micro_batches));
  schedule::Problem problem;
  problem.num_ranks = layout.pp;
  problem.num_virtual = layout.num_virtual;
  problem.num_micro_batches = static_cast<int>(layout.num_micro_batches);
  return schedule::make(layout.schedule, problem);
}

// The cells of the first stage begin behind it.
Status take_out_embedding(mesh::StageLayers& first) {
  first.begin += 1;
  if (first.begin < first.end) return {};
  return fail(ExitCode::kUsage,
              "layout: the first stage has nothing but the embedding, which all stages share",
              "give it a block (parallel.stages, or fewer stages), or leave the embedding there "
              "(parallel.embedding: first_stage)");
}

Schedule without_pairs(Schedule schedule) {
  for (auto& cells : schedule.ranks)
    for (Cell& cell : cells) cell.pair = -1;
  return schedule;
}

}  // namespace

Result<Pipeline> pipeline_of(const mesh::Layout& layout, int num_layers, bool train) {
  Pipeline pipeline;
  PTRAIN_TRY(pipeline.stages, mesh::layers_of_stages(layout, num_layers));
  pipeline.spreads_embedding = layout.spread_embedding && layout.pp > 1;
  if (pipeline.spreads_embedding) PTRAIN_CHECK(take_out_embedding(pipeline.stages.front()));
  const bool is_file = layout.num_stages() > 1 && !layout.schedule_csv.empty();
  if (is_file) {
    PTRAIN_TRY(pipeline.schedule, mesh::schedule_of_file(layout));
    if (train) PTRAIN_CHECK(check_count(pipeline.schedule, layout));
    pipeline.ranks = schedule::ranks_of_stages(pipeline.schedule);
  } else {
    PTRAIN_TRY(pipeline.ranks, mesh::ranks_of_stages(layout));
    if (train) {
      PTRAIN_TRY(pipeline.schedule, by_name(layout));
    }
  }
  if (!train) pipeline.schedule = forward_only(layout, pipeline.ranks);
  pipeline.schedule = without_pairs(std::move(pipeline.schedule));
  pipeline.spreads_head = layout.spread_head && layout.pp > 1;
  if (pipeline.spreads_head) pipeline.schedule = schedule::add_shared_work(pipeline.schedule);
  return pipeline;
}

}  // namespace ptrain::program
