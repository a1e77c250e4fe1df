#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/schedule/catalogue.h"
#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "core/schedule/diagram.h"
#include "core/schedule/simulate.h"
#include "core/schedule/transfers.h"
#include "launcher/base/file.h"

namespace ptrain::cli {

namespace {

using nlohmann::json;
using schedule::Schedule;
using schedule::Simulation;

constexpr std::size_t kMostFile = std::size_t{1} << 26;
constexpr int kColumns = 120;  // of the diagram in a terminal

std::string virtual_text(const schedule::VirtualRule& rule) {
  if (rule.least == rule.most) return std::to_string(rule.least);
  if (rule.step == 1 && rule.most == 0) return fmt::format("{} or more", rule.least);
  return fmt::format("{}, {}, ...{}", rule.least, rule.least + rule.step,
                     rule.most == 0 ? "" : fmt::format(" {}", rule.most));
}

json to_json(const schedule::Entry& entry) {
  return {{"name", entry.name},
          {"weight_copies", entry.num_copies},
          {"virtual",
           {{"least", entry.num_virtual.least},
            {"most", entry.num_virtual.most == 0 ? json() : json(entry.num_virtual.most)},
            {"step", entry.num_virtual.step}}},
          {"constraint", entry.constraint},
          {"placement", schedule::name_of(entry.placement)},
          {"reference", entry.reference}};
}

std::string list_text() {
  std::string text = fmt::format("{:<26} {:<7} {:<10} {:<10} {:<29} {}\n", "name", "copies",
                                 "virtual", "placement", "reference", "constraint");
  for (const schedule::Entry& entry : schedule::catalogue()) {
    text += fmt::format("{:<26} {:<7} {:<10} {:<10} {:<29} {}", entry.name, entry.num_copies,
                        virtual_text(entry.num_virtual), schedule::name_of(entry.placement),
                        entry.reference, entry.constraint);
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text +
         "\ncopies: of the weights; virtual: stages a rank may hold; p ranks, m micro-batches.\n"
         "NAME_2bp: any of these, with weight gradients last.\n";
}

std::string list_json() {
  json all = json::array();
  for (const schedule::Entry& entry : schedule::catalogue()) all.push_back(to_json(entry));
  return all.dump(1) + "\n";
}

json to_json(const schedule::Cell& cell, const schedule::Span& span) {
  json value = {{"work", std::string(1, letter_of(cell.work))},
                {"stage", cell.stage},
                {"micro_batch", cell.micro_batch},
                {"slice", cell.slice},
                {"copy", cell.copy},
                {"start", span.start},
                {"end", span.end}};
  if (cell.pair >= 0) value["pair"] = cell.pair;
  return value;
}

json to_json(const std::string& name, const Schedule& schedule, const Simulation& simulation) {
  json ranks = json::array();
  for (std::size_t i = 0; i < schedule.ranks.size(); ++i) {
    const auto& rank = simulation.ranks[i];
    json cells = json::array();
    for (std::size_t step = 0; step < schedule.ranks[i].size(); ++step)
      cells.push_back(to_json(schedule.ranks[i][step], rank.spans[step]));
    ranks.push_back({{"rank", i},
                     {"busy", rank.busy},
                     {"peak_stashes",
                      {{"freed_at_w", rank.peak.weight},
                       {"freed_at_i", rank.peak.input},
                       {"half_and_half", rank.peak.half}}},
                     {"sends", rank.num_sends},
                     {"cells", cells}});
  }
  return {{"name", name},
          {"stages", schedule.num_stages},
          {"micro_batches", schedule.num_micro_batches},
          {"slices", schedule.num_slices},
          {"weight_copies", num_copies(schedule)},
          {"makespan", simulation.makespan},
          {"busy_max", simulation.busy_max},
          {"span_max", simulation.span_max},
          {"bubble", simulation.bubble},
          {"ranks", ranks}};
}

std::string to_text(const std::string& name, const Schedule& schedule,
                    const Simulation& simulation) {
  std::string text =
      fmt::format("{}: {} ranks, {} stages, {} micro-batches\n\n", name, schedule.num_ranks(),
                  schedule.num_stages, schedule.num_micro_batches);
  text += schedule::diagram(schedule, simulation, kColumns);
  text += fmt::format(
      "\nmakespan {:g}, busiest rank {:g}, longest rank {:g} from start to end, bubble {:.1f} %\n"
      "peak stashes of a stage's micro-batch, freed at the end of B or W (of B or I; half and "
      "half):\n",
      simulation.makespan, simulation.busy_max, simulation.span_max, 100 * simulation.bubble);
  for (std::size_t rank = 0; rank < simulation.ranks.size(); ++rank) {
    const auto& of = simulation.ranks[rank];
    text += fmt::format("{:>4}  {:g} ({:g}; {:g}), busy {:g}, sends {}\n", rank, of.peak.weight,
                        of.peak.input, of.peak.half, of.busy, of.num_sends);
  }
  return text;
}

Status check_costs(const schedule::Costs& costs) {
  constexpr double kMost = 1e12;
  const double all[] = {costs.forward, costs.backward_input, costs.backward_weight,
                        costs.communication, costs.overlapped};
  const bool legal = costs.forward > 0 && costs.backward_input > 0 && costs.backward_weight > 0 &&
                     std::ranges::all_of(all, [](double c) { return c >= 0 && c <= kMost; });
  if (legal) return {};
  return fail(ExitCode::kUsage, "a cost is negative or beyond 1e12, or F, I or W costs nothing",
              "give --costs F,I,W,COMM, such as 1,1,1,0");
}

// What the file says may run, where sends wait for nobody; `blocking`: also where they wait.
Result<Schedule> read_checked(const ScheduleArguments& arguments) {
  PTRAIN_TRY(const std::string text, read_file(arguments.check, kMostFile));
  PTRAIN_TRY(const auto steps, schedule::steps_from_csv(text, arguments.check));
  const bool lowered = !schedule::only_work(steps);
  if (arguments.blocking && lowered)
    PTRAIN_CHECK(check_transfers(steps, schedule::Sends::kRendezvous));
  PTRAIN_TRY(Schedule schedule, schedule::from_csv(text, arguments.check));
  if (arguments.problem.num_micro_batches > 0)
    schedule.num_micro_batches = arguments.problem.num_micro_batches;
  if (arguments.problem.num_ranks > 0 && arguments.problem.num_ranks != schedule.num_ranks())
    return fail(ExitCode::kUsage,
                fmt::format("{} has {} rows, but --ranks is {}", arguments.check,
                            schedule.num_ranks(), arguments.problem.num_ranks),
                "a row is a rank");
  PTRAIN_CHECK(check(schedule));
  if (arguments.blocking && !lowered)
    PTRAIN_CHECK(check_transfers(with_transfers(schedule), schedule::Sends::kRendezvous));
  return schedule;
}

Result<Schedule> make_named(const ScheduleArguments& arguments) {
  schedule::Problem problem = arguments.problem;
  if (problem.num_ranks == 0 || problem.num_micro_batches == 0)
    return fail(ExitCode::kUsage, "a schedule needs --ranks and --micro-batches",
                "such as `ptrain schedule 1f1b --ranks 4 --micro-batches 8`");
  const schedule::Entry* entry = schedule::find(arguments.name);
  if (problem.num_virtual == 0 && entry != nullptr) problem.num_virtual = entry->num_virtual.least;
  return schedule::make(arguments.name, problem);
}

Status print_schedule(const ScheduleArguments& arguments, const std::string& name,
                      const Schedule& schedule) {
  if (arguments.csv) {
    print(to_csv(schedule));
    return {};
  }
  if (arguments.torch_csv) return to_torch_csv(schedule).map([](const auto& csv) { print(csv); });
  PTRAIN_TRY(const Simulation simulation,
             simulate(schedule, uniform_timing(schedule, arguments.problem.costs)));
  if (!arguments.svg.empty())
    return publish_file(arguments.svg, schedule::to_svg(name, schedule, simulation));
  print(arguments.json ? to_json(name, schedule, simulation)
                                 .dump(1, ' ', false, json::error_handler_t::replace) +
                             "\n"
                       : escaped(to_text(name, schedule, simulation)));
  return {};
}

}  // namespace

Result<ExitCode> cmd_schedule(const ScheduleArguments& arguments) {
  if (arguments.list) {
    print(arguments.json ? list_json() : list_text());
    return ExitCode::kDone;
  }
  if (arguments.name.empty() == arguments.check.empty())
    return fail(ExitCode::kUsage, "give the name of a schedule, or --check with a file",
                "`ptrain schedule --list` shows the names");
  PTRAIN_CHECK(check_costs(arguments.problem.costs));
  if (!arguments.check.empty() && (arguments.csv || arguments.torch_csv) &&
      arguments.problem.costs != schedule::Costs{})
    return fail(ExitCode::kUsage, "costs change no order that a file gives",
                "leave --costs and --overlapped out, or print times with --json");
  PTRAIN_TRY(const Schedule schedule,
             arguments.check.empty() ? make_named(arguments) : read_checked(arguments));
  const std::string& name = arguments.check.empty() ? arguments.name : arguments.check;
  PTRAIN_CHECK(print_schedule(arguments, name, schedule));
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
