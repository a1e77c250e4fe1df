#include "core/program/pipeline.h"

#include <fmt/format.h>

#include "core/schedule/catalogue.h"
#include "core/schedule/check.h"
#include "core/schedule/csv.h"

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

Result<Schedule> from_file(const mesh::Layout& layout) {
  PTRAIN_TRY(Schedule schedule, schedule::from_csv(layout.schedule_csv, "the layout's schedule"));
  PTRAIN_CHECK(schedule::check(schedule));
  if (schedule.num_micro_batches != layout.num_micro_batches)
    return fail(ExitCode::kUsage,
                fmt::format("the schedule's file has {} micro-batches, but a step {} of each rank",
                            schedule.num_micro_batches, layout.num_micro_batches),
                "choose dp, shard, micro_batch and global_batch_tokens so that they agree");
  return schedule;
}

Result<Schedule> by_name(const mesh::Layout& layout) {
  schedule::Problem problem;
  problem.num_ranks = layout.pp;
  problem.num_virtual = layout.num_virtual;
  problem.num_micro_batches = static_cast<int>(layout.num_micro_batches);
  return schedule::make(layout.schedule, problem);
}

Status check_runs(const Schedule& schedule) {
  if (schedule::num_copies(schedule) > 1)
    return fail(ExitCode::kUsage, "the schedule keeps two copies of the weights, which cannot run",
                "take one with one copy, such as dualpipe_v");
  if (schedule.num_slices > 1)
    return fail(ExitCode::kUsage, "the schedule cuts micro-batches into slices, which cannot run",
                "take one of whole micro-batches, such as 1f1b");
  return {};
}

Result<Schedule> schedule_of(const mesh::Layout& layout, const std::vector<int>& ranks,
                             bool train) {
  if (!train) return forward_only(layout, ranks);
  if (layout.num_stages() == 1) return one_stage(static_cast<int>(layout.num_micro_batches));
  PTRAIN_TRY(Schedule schedule, layout.schedule_csv.empty() ? by_name(layout) : from_file(layout));
  PTRAIN_CHECK(check_runs(schedule));
  for (auto& cells : schedule.ranks)
    for (Cell& cell : cells) cell.pair = -1;
  return schedule;
}

}  // namespace

Result<Pipeline> pipeline_of(const mesh::Layout& layout, int num_layers, bool train) {
  Pipeline pipeline;
  PTRAIN_TRY(pipeline.stages, mesh::layers_of_stages(layout, num_layers));
  PTRAIN_TRY(pipeline.ranks, mesh::ranks_of_stages(layout));
  PTRAIN_TRY(pipeline.schedule, schedule_of(layout, pipeline.ranks, train));
  return pipeline;
}

}  // namespace ptrain::program
