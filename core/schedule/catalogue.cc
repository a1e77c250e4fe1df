#include "core/schedule/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/refuse.h"
#include "core/schedule/simulate.h"
#include "core/schedule/two_stage.h"

namespace ptrain::schedule {
namespace {

constexpr std::string_view kTwoStage = "_2bp";
constexpr VirtualRule kOne{1, 1, 1};
constexpr VirtualRule kTwo{2, 2, 1};
constexpr VirtualRule kFour{4, 4, 1};
constexpr VirtualRule kAny{1, 0, 1};
constexpr VirtualRule kWaves{2, 0, 2};

constexpr auto kCatalogue = std::to_array<Entry>({
    {"gpipe", 1, kOne, "", Placement::kLoop, "arXiv 1811.06965", gpipe},
    {"gpipe_lifo", 1, kOne, "", Placement::kLoop, "arXiv 1811.06965", gpipe_lifo},
    {"1f1b", 1, kOne, "", Placement::kLoop, "arXiv 1806.03377, 2007.01045", one_f_one_b},
    {"eager_1f1b", 1, kOne, "", Placement::kLoop, "arXiv 2211.05322", eager_one_f_one_b},
    {"1f1b_overlap", 1, kOne, "", Placement::kLoop, "Megatron-LM", overlapped_one_f_one_b},
    {"interleaved_1f1b", 1, kAny, "groups of p or more micro-batches, the last too",
     Placement::kLoop, "arXiv 2104.04473", interleaved_one_f_one_b, true},
    {"kimi_k2", 1, kAny, "groups of p or more micro-batches, the last too", Placement::kLoop,
     "arXiv 2507.20534", kimi_k2, true},
    {"interleaved_h1", 1, kAny, "", Placement::kZigzag, "SpectraX", interleaved_h1},
    {"interleaved_1f1b_plus_one", 1, kAny, "", Placement::kZigzag, "SpectraX",
     interleaved_one_f_one_b_plus_one},
    {"breadth_first", 1, kAny, "", Placement::kLoop, "arXiv 2211.05953", breadth_first},
    {"breadth_first_fifo", 1, kAny, "", Placement::kLoop, "arXiv 2211.05953", breadth_first_fifo},
    {"zb_h1", 1, kOne, "", Placement::kLoop, "arXiv 2401.10241", zb_h1},
    {"zb_h2", 1, kOne, "", Placement::kLoop, "arXiv 2401.10241", zb_h2},
    {"interleaved_zb_1p", 1, kAny, "groups of p or more micro-batches, the last too",
     Placement::kLoop, "arXiv 2401.10241", interleaved_zb_1p, true},
    {"zb_v", 1, kTwo, "", Placement::kZigzag, "arXiv 2401.10241", zb_v},
    {"v_half", 1, kTwo, "", Placement::kZigzag, "arXiv 2405.15362", v_half},
    {"v_min", 1, kTwo, "", Placement::kZigzag, "arXiv 2405.15362", v_min},
    {"dualpipe_v", 1, kTwo, "m >= 2p", Placement::kZigzag, "arXiv 2412.19437", dualpipe_v},
    {"chimera", 2, kTwo, "p even, p divides m", Placement::kMirrored, "arXiv 2107.06925", chimera},
    {"bitpipe", 2, kFour, "p even, p divides m", Placement::kMirrored, "arXiv 2410.19367", bitpipe},
    {"dualpipe", 2, kTwo, "p even, m even, m >= 2p", Placement::kMirrored, "arXiv 2412.19437",
     dualpipe},
    {"hanayo", 1, kWaves, "", Placement::kZigzag, "arXiv 2308.15762", hanayo},
    {"zeropp", 1, kAny, "", Placement::kLoop, "arXiv 2402.03791", zeropp, true},
    {"zb_auto", 1, kOne, "", Placement::kLoop, "arXiv 2401.10241", zb_auto},
    {"v_auto", 1, kTwo, "", Placement::kZigzag, "arXiv 2405.15362", v_auto},
});

tl::unexpected<Error> unknown(std::string_view name) {
  std::string names;
  for (const Entry& entry : kCatalogue) names += fmt::format(" {}", entry.name);
  return fail(
      ExitCode::kUsage, fmt::format("there is no schedule {}", name),
      fmt::format("one of:{}; {} after a name puts weight gradients last", names, kTwoStage));
}

Status check_problem(const Entry& entry, const Problem& problem) {
  if (problem.num_ranks < 1)
    return refuse(entry.name, fmt::format("has {} ranks", problem.num_ranks), "1 rank");
  if (problem.num_micro_batches < 1)
    return refuse(entry.name, fmt::format("has {} micro-batches", problem.num_micro_batches),
                  "1 micro-batch");
  if (!entry.num_virtual.allows(problem.num_virtual))
    return refuse(
        entry.name, fmt::format("does not run with {} virtual stages a rank", problem.num_virtual),
        fmt::format("{} virtual stages a rank", entry.num_virtual.nearest(problem.num_virtual)));
  if (problem.group != 0 && !entry.has_groups)
    return refuse(entry.name, "has no groups of micro-batches", "none given");
  const std::int64_t stages = std::int64_t{problem.num_ranks} * problem.num_virtual;
  if (stages > kMostPlaces / problem.num_micro_batches)
    return refuse(entry.name,
                  fmt::format("has {} stages and {} micro-batches, too large a table", stages,
                              problem.num_micro_batches),
                  fmt::format("a product of {}", kMostPlaces));
  return {};
}

Status check_cap(std::string_view name, const Schedule& schedule, double cap) {
  double peak = 0;
  for (const auto& cells : schedule.ranks) peak = std::max(peak, peak_stashes(cells).weight);
  if (cap <= 0 || peak <= cap) return {};
  return refuse(name, fmt::format("holds {} stashes on a rank, more than the cap of {}", peak, cap),
                fmt::format("a cap of {}, or zb_auto and v_auto, which search under a cap", peak));
}

}  // namespace

bool VirtualRule::allows(int number) const {
  return number >= least && (most == 0 || number <= most) && (number - least) % step == 0;
}

int VirtualRule::nearest(int number) const {
  const int above = std::max(number, least);
  const int on_step = above - (above - least) % step;
  return most == 0 ? on_step : std::min(on_step, most);
}

std::span<const Entry> catalogue() { return kCatalogue; }

const Entry* find(std::string_view name) {
  if (name.ends_with(kTwoStage)) name.remove_suffix(kTwoStage.size());
  const auto found = std::ranges::find(kCatalogue, name, &Entry::name);
  return found == kCatalogue.end() ? nullptr : &*found;
}

Result<Schedule> make(std::string_view name, const Problem& problem) {
  const Entry* entry = find(name);
  if (entry == nullptr) return unknown(name);
  PTRAIN_CHECK(check_problem(*entry, problem));
  PTRAIN_TRY(Schedule schedule, entry->generate(problem));
  if (name.ends_with(kTwoStage)) schedule = weights_last(schedule);
  PTRAIN_CHECK(check_cap(name, schedule, problem.memory_cap));
  return schedule;
}

}  // namespace ptrain::schedule
