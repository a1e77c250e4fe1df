#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "cli/checks.h"
#include "cli/subcommand.h"

namespace ptrain::cli {
namespace {

// One of the forms in which a schedule is printed; the list has two of them.
void add_forms(CLI::App* sub, ScheduleArguments& args, CLI::Option* list) {
  CLI::Option* const forms[] = {sub->add_flag("--json", args.json, "Print with all times as JSON"),
                                sub->add_flag("--csv", args.csv, "Print as CSV, a row a rank"),
                                sub->add_flag("--torch-csv", args.torch_csv,
                                              "The same, refused where PyTorch could not read it"),
                                sub->add_option("--svg", args.svg, "Draw into this file")};
  for (CLI::Option* one : forms)
    for (CLI::Option* other : forms)
      if (one != other) one->excludes(other);
  for (CLI::Option* of_one : {forms[1], forms[2], forms[3]}) list->excludes(of_one);
}

// "F,I,W,COMM" or "F,I,W".
schedule::Costs costs_of(const std::string& text) {
  schedule::Costs costs;
  std::istringstream numbers(text);
  char comma = ',';
  numbers >> costs.forward >> comma >> costs.backward_input >> comma >> costs.backward_weight;
  if (numbers && !numbers.eof()) numbers >> comma >> costs.communication;
  if (!numbers || !numbers.eof() || std::ranges::count(text, ',') < 2)
    throw CLI::ValidationError("--costs", "is F,I,W,COMM, such as 1,1,1,0");
  return costs;
}

}  // namespace

void add_schedule(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<ScheduleArguments>();
  auto* sub = add(app, chosen, "schedule", "Show a pipeline schedule: order, times and stashes",
                  &cmd_schedule, args);
  sub->footer(
      "Costs are those of one stage and micro-batch, in any unit: forward F, gradient of the input "
      "I,\n"
      "gradient of the weights W, one hop between ranks COMM. The CSV is that of\n"
      "torch.distributed.pipelining; 2F7.1*0 is our word for slice 1 on copy 0 of the weights.");
  schedule::Problem& problem = args->problem;
  auto* name = sub->add_option("name", args->name, "Schedule, as --list names it");
  auto* list = sub->add_flag("--list", args->list, "List the schedules")->excludes(name);
  auto* check = sub->add_option("--check", args->check, "Check this CSV file and show what it says")
                    ->excludes(name)
                    ->excludes(list);
  sub->add_flag("--blocking", args->blocking, "Refuse what hangs where sends wait for receivers")
      ->needs(check);
  auto* ranks = sub->add_option("--ranks", problem.num_ranks, "Pipeline ranks")
                    ->check(whole_number(1, 65536));
  auto* stages =
      sub->add_option("--virtual", problem.num_virtual, "Stages of a rank (default: the fewest)")
          ->check(whole_number(1, 65536));
  auto* micro_batches =
      sub->add_option("--micro-batches", problem.num_micro_batches, "Micro-batches of a step")
          ->check(whole_number(1, 1'000'000));
  auto* group = sub->add_option("--group", problem.group,
                                "Micro-batches that interleaved orders take at a time")
                    ->check(whole_number(1, 1'000'000));
  auto* costs = sub->add_option_function<std::string>(
      "--costs",
      [&problem](const std::string& text) {
        const double overlapped = problem.costs.overlapped;
        problem.costs = costs_of(text);
        problem.costs.overlapped = overlapped;
      },
      "F,I,W,COMM (default: 1,1,1,0)");
  auto* overlapped = sub->add_option("--overlapped", problem.costs.overlapped,
                                     "Cost of a pair that runs at the same time (default: the sum)")
                         ->check(positive_number());
  auto* cap =
      sub->add_option("--memory-cap", problem.memory_cap, "Most stashes that a rank may hold")
          ->check(positive_number());
  for (CLI::Option* of_one : {ranks, stages, micro_batches, group, costs, overlapped, cap})
    list->excludes(of_one);
  for (CLI::Option* of_name : {stages, group, cap}) check->excludes(of_name);
  add_forms(sub, *args, list);
}

}  // namespace ptrain::cli
