#include "core/mesh/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/schedule/catalogue.h"
#include "core/schedule/check.h"
#include "core/schedule/csv.h"

namespace ptrain::mesh {
namespace {

std::vector<int> even_counts(int num_layers, int num_stages) {
  std::vector<int> counts(static_cast<std::size_t>(num_stages), num_layers / num_stages);
  std::fill_n(counts.begin(), num_layers % num_stages, num_layers / num_stages + 1);
  return counts;
}

// The engine keeps each stage on one rank; other schedules are only made and simulated.
Status check_copies(int num_copies, std::string_view what) {
  if (num_copies == 1) return {};
  return fail(ExitCode::kUsage,
              fmt::format("{} holds the weights twice, which can be simulated, but not run", what),
              "take a schedule with one copy of them, such as dualpipe_v");
}

Result<schedule::Entry> entry_of(std::string_view name) {
  const schedule::Entry* entry = schedule::find(name);
  if (entry == nullptr)
    return fail(ExitCode::kUsage, fmt::format("there is no schedule '{}'", name),
                "`ptrain schedule --list` shows them");
  PTRAIN_CHECK(check_copies(entry->num_copies, fmt::format("schedule {}", name)));
  return *entry;
}

}  // namespace

Result<std::vector<StageLayers>> layers_of_stages(const Layout& layout, int num_layers) {
  const int num_stages = layout.num_stages();
  std::vector<int> counts = layout.stage_layers;
  if (counts.empty()) counts = even_counts(num_layers, num_stages);
  const int sum = std::accumulate(counts.begin(), counts.end(), 0);
  if (static_cast<int>(counts.size()) != num_stages || sum != num_layers)
    return fail(ExitCode::kUsage,
                fmt::format("layout: stages of {} layers, but there are {} stages and {} layers",
                            fmt::join(counts, ", "), num_stages, num_layers),
                "embedding and head count as a layer each");
  if (std::ranges::min(counts) < 1)
    return fail(
        ExitCode::kUsage,
        fmt::format("layout: {} layers leave some of {} stages empty", num_layers, num_stages),
        fmt::format("pp x virtual is {} at most", num_layers));
  const auto num_recomputed = layout.stage_recompute.size();
  if (num_recomputed > 0 && num_recomputed != counts.size())
    return fail(ExitCode::kUsage,
                fmt::format("layout: what {} stages compute again, but there are {} stages",
                            num_recomputed, num_stages),
                "say it once for each stage, or leave it out");
  std::vector<StageLayers> stages;
  int begin = 0;
  for (const int count : counts) {
    stages.push_back({begin, begin + count});
    begin += count;
  }
  return stages;
}

std::vector<recipe::Recompute> recompute_of_layers(const Layout& layout, int num_layers) {
  std::vector<recipe::Recompute> all(static_cast<std::size_t>(num_layers), layout.recompute);
  if (layout.stage_recompute.empty()) return all;
  const auto stages = layers_of_stages(layout, num_layers);
  for (std::size_t s = 0; stages && s < stages->size(); ++s)
    std::fill(all.begin() + (*stages)[s].begin, all.begin() + (*stages)[s].end,
              layout.recompute_of(static_cast<int>(s)));
  return all;
}

Result<schedule::Schedule> schedule_of_file(const Layout& layout) {
  PTRAIN_TRY(schedule::Schedule schedule,
             schedule::from_csv(layout.schedule_csv, "the layout's schedule"));
  PTRAIN_CHECK(schedule::check(schedule));
  if (schedule.num_ranks() != layout.pp || schedule.num_stages != layout.num_stages())
    return fail(
        ExitCode::kUsage,
        fmt::format("the schedule's file has {} ranks and {} stages, but the layout {} and "
                    "{}",
                    schedule.num_ranks(), schedule.num_stages, layout.pp, layout.num_stages()),
        "set pp and virtual as in the file");
  PTRAIN_CHECK(check_copies(schedule::num_copies(schedule), "the schedule's file"));
  if (schedule.num_slices > 1)
    return fail(ExitCode::kUsage,
                "the schedule's file cuts micro-batches into slices, which can be simulated, but "
                "not run",
                "take one of whole micro-batches, such as 1f1b");
  return schedule;
}

Result<std::vector<int>> ranks_of_stages(const Layout& layout) {
  std::vector<int> ranks(static_cast<std::size_t>(layout.num_stages()), 0);
  if (layout.pp == 1) return ranks;
  if (!layout.schedule_csv.empty()) {
    PTRAIN_TRY(const schedule::Schedule schedule, schedule_of_file(layout));
    return schedule::ranks_of_stages(schedule);
  }
  PTRAIN_TRY(const schedule::Entry entry, entry_of(layout.schedule));
  schedule::Problem problem;
  problem.num_ranks = layout.pp;
  problem.num_virtual = layout.num_virtual;
  for (std::size_t stage = 0; stage < ranks.size(); ++stage)
    ranks[stage] = schedule::rank_of_stage(entry.placement, static_cast<int>(stage), problem);
  return ranks;
}

}  // namespace ptrain::mesh
