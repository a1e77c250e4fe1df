#include "cli/args.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/checks.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/words.h"
#include "core/recipe/spelling.h"
#include "core/run/build_id.h"

namespace ptrain::cli {

namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20, kMostNodes = std::int64_t{1} << 16,
                       kMostAttempts = 1'000'000'000;

void add_overrides(CLI::App* sub, std::vector<std::string>& overrides) {
  sub->add_option("overrides", overrides, "key=value: replaces a field of the recipe");
}

void add_plan(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<PlanArguments>();
  auto* sub = add(app, chosen, "plan", "Find the best layout for a recipe", &cmd_plan, args);
  sub->add_option("recipe", args->recipe, "Recipe file (YAML)")->required();
  add_overrides(sub, args->overrides);
  sub->add_option("--cluster", args->cluster,
                  "Cluster file, or the name of one in configs/clusters (default: this machine)");
  auto* explain = sub->add_flag("--explain", args->explain, "Say what ruled out the other layouts");
  auto* as_json =
      sub->add_flag("--json", args->json, "Print the plan as JSON, with what --explain says");
  sub->add_flag("--probe", args->probe, "Measure this machine again, when it is idle");
  sub->add_option("--program", args->program_rank, "Print the program of this rank")
      ->check(whole_number(0, kMostRanks - 1))
      ->excludes(explain)
      ->excludes(as_json);
}

// Options of Slurm in its users' words; each is an override of cluster.slurm.
void add_slurm(CLI::App* sub, std::vector<std::string>& overrides) {
  const auto add_one = [&](const char* names, const char* field, const char* description) {
    sub->add_option_function<std::string>(
           names,
           [&overrides, field](const std::string& value) {
             const auto text = nlohmann::json(value).dump(-1, ' ', false,
                                                          nlohmann::json::error_handler_t::replace);
             overrides.push_back(std::string("cluster.slurm.") + field + "=" + text);
           },
           description)
        ->group("Slurm, on a login node");
  };
  const auto add_number = [&](const char* names, const char* field, const char* description) {
    sub->add_option_function<std::int64_t>(
           names,
           [&overrides, field](std::int64_t value) {
             overrides.push_back(std::string("cluster.slurm.") + field + "=" +
                                 std::to_string(value));
           },
           description)
        ->check(whole_number(1, kMostNodes))
        ->group("Slurm, on a login node");
  };
  add_number("-N,--nodes", "nodes", "Nodes of the job");
  add_one("-p,--partition", "partition", "Its partition");
  add_one("-A,--account", "account", "Account that it is booked on");
  add_one("-q,--qos", "qos", "Quality of service");
  add_one("-t,--time", "time", "Time limit, such as 30, 12:00:00 or 2-12");
  add_number("--gpus-per-node", "gpus_per_node", "GPUs of each node");
  add_one("-C,--constraint", "constraint", "Features that nodes must have");
  add_one("-x,--exclude", "exclude", "Nodes that it must not get");
  add_one("--comment", "comment", "Comment of the job");
  add_one("-a,--array", "array", "Jobs that go on one after the other, such as 9 or 1-9%1");
}

void add_run(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<RunArguments>();
  auto* sub = add(app, chosen, "run", "Train a model after a recipe", &cmd_run, args);
  sub->add_option("recipe", args->recipe, "Recipe file (YAML)")->required();
  add_overrides(sub, args->overrides);
  sub->add_option("--plan", args->plan, "Run this plan.json instead of making a plan");
  sub->add_option("--directory", args->directory, "Run directory (default: runs/NAME/TIME)");
  auto* dry = sub->add_flag("--dry-run", args->dry_run, "Print plan and command, start nothing");
  sub->add_flag("-d,--detach", args->detach, "Submitted to Slurm: do not follow the job")
      ->excludes(dry);
  add_slurm(sub, args->slurm);
  auto* parity = sub->add_flag(
      "--parity", args->parity,
      "Train nothing: compare the first micro-batch of each rank with the same on one rank");
  parity->excludes(dry);
  sub->add_flag("--json", args->json, "Print what --parity finds as JSON")->needs(parity);
  sub->footer(
      "--parity makes the first step of every shape twice, with one micro-batch a rank: as "
      "planned,\n"
      "and on one rank. It compares what each layer makes of the stream and of its gradient, the\n"
      "loss, and every parameter's gradient and update, names the first that differ beyond "
      "rounding,\n"
      "and ends with 0 where all are equal, with 10 where not.");
}

void add_resume(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<ResumeArguments>();
  auto* sub = add(app, chosen, "resume", "Continue a run, or begin one from a checkpoint of anyone",
                  &cmd_resume, args);
  sub->add_option("from", args->from,
                  "Run directory: it goes on from its newest checkpoint by its own plan.json. "
                  "With --recipe: a checkpoint (DCP folder) from which a new run begins")
      ->required();
  add_overrides(sub, args->overrides);
  auto* recipe = sub->add_option("--recipe", args->recipe, "Recipe file (YAML) of the new run");
  sub->add_option("--directory", args->directory, "Of the new run (default: runs/NAME/TIME)")
      ->needs(recipe);
  sub->add_flag("--allow-changes", args->allow_changes,
                "Go on with what differs from before, and begin anew with what is missing");
  sub->add_flag("-d,--detach", args->detach, "Submitted to Slurm: do not follow the job");
  add_slurm(sub, args->slurm);
}

void add_data(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<DataArguments>();
  auto* sub = add(app, chosen, "data", "Show the texts of a recipe and how well they pack",
                  &cmd_data, args);
  auto* recipe = sub->add_option("recipe", args->recipe, "Recipe file (YAML)");
  add_overrides(sub, args->overrides);
  auto* lengths = sub->add_option("--lengths", args->lengths,
                                  "In place of a recipe: a file with one document length a line");
  sub->add_option("--capacity", args->capacity, "Tokens of a row")
      ->check(whole_number(1, std::int64_t{1} << 40))
      ->needs(lengths);
  lengths->excludes(recipe);
  sub->add_flag("--json", args->json, "Print as JSON");
}

void add_export(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<ExportArguments>();
  auto* sub =
      add(app, chosen, "export", "Write a model as a Hugging Face folder", &cmd_export, args);
  sub->footer(
      "The folder gets config.json and model.safetensors, or shards and their index, as\n"
      "transformers' AutoModelForCausalLM.from_pretrained loads them; it appears whole or not at\n"
      "all, and only its owner can read it. The tokenizer files of the Hugging Face folder that "
      "the\n"
      "model began from (tokenizer.json, generation_config.json and their like), or the recipe's\n"
      "SentencePiece model, come with it; for a model of bytes TOKENS.md says what the tokens "
      "are.");
  sub->add_option("from", args->from,
                  "Run directory (its newest good checkpoint), or a checkpoint of ptrain")
      ->required();
  sub->add_option("--to", args->to, "Folder to write; it must not be there yet")->required();
  sub->add_option("--dtype", args->dtype, "Numbers of the weights (default: fp32)")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  sub->add_option("--max-shard-size", args->shard_bytes,
                  "Most bytes of tensors in a file, such as 500MB or 5GB (default: 5GB)")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60));
}

void add_report(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<ReportArguments>();
  auto* sub =
      add(app, chosen, "report", "Write what a run did as one HTML file", &cmd_report, args);
  sub->footer(
      "The file holds all it shows: it loads nothing and runs no script. It may be made while the\n"
      "run goes on, and again afterwards.");
  sub->add_option("run", args->run, "Run directory")->required();
  sub->add_option("--to", args->to, "File to write (default: report.html in the run directory)");
}

// Both are made from the app itself, and so know every option.
void add_completion(CLI::App& app, Command& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub =
      app.add_subcommand("completion", "Print the script that completes ptrain in a shell");
  sub->footer("bash: source <(ptrain completion bash); fish: ptrain completion fish | source");
  sub->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->callback([&app, &chosen, shell] {
    chosen = [text = completion(*shell, words_of(app))]() -> Result<ExitCode> {
      print(text);
      return ExitCode::kDone;
    };
  });
  CLI::App* manual = app.add_subcommand("manual", "Print the manual page");
  manual->callback([&app, &chosen] {
    chosen = [text = man_page(words_of(app))]() -> Result<ExitCode> {
      print(text);
      return ExitCode::kDone;
    };
  });
}

void add_supervise(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<SuperviseArguments>();
  auto* sub = add(app, chosen, "supervise",
                  "Train a run that is there (the batch script's command)", &cmd_supervise, args);
  sub->add_option("run", args->run, "Run directory")->required();
  sub->group("");  // internal: not shown in help
}

void add_doctor(CLI::App& app, Command& chosen) {
  add(app, chosen, "doctor", "Look at what starting ranks from here would need", &cmd_doctor,
      std::make_shared<DoctorArguments>());
}

void add_preflight_node(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<PreflightNodeArguments>();
  auto* sub = add(app, chosen, "preflight-node",
                  "Look at this node before ranks start (started by "
                  "`ptrain`)",
                  &cmd_preflight_node, args);
  sub->add_option("--run", args->run, "Run directory");
  sub->add_option("--plan", args->plan, "Hash of its plan.json");
  sub->add_option("--engine", args->engine, "Path of the engine");
  sub->add_option("--hub", args->hub, "Address at which nodes are told of their neighbours");
  sub->add_option("--port", args->port, "Its port")->check(whole_number(1, 65535));
  sub->add_flag("--gpus", args->gpus, "Look at its GPUs too");
  sub->group("");  // internal: not shown in help
}

void add_seats(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<SeatsArguments>();
  auto* sub = add(app, chosen, "seats",
                  "Print which devices the ranks of this node would have (started by `ptrain`)",
                  &cmd_seats, args);
  sub->add_option("--slots", args->slots, "Ranks of this node")->check(whole_number(1, kMostRanks));
  sub->add_option("--threads", args->threads, "Threads of one")->check(whole_number(1, kMostRanks));
  sub->add_flag("--gpus", args->gpus, "Each has a GPU");
  sub->group("");  // internal: not shown in help
}

void add_local_copy(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<LocalCopyArguments>();
  auto* sub = add(app, chosen, "local-copy",
                  "Copy ptrain and its libraries to this node's disk (started by `ptrain`)",
                  &cmd_local_copy, args);
  auto* engine = sub->add_option("--engine", args->engine, "Print what this engine loads");
  auto* list =
      sub->add_option("--list", args->list, "File that says what to copy")->excludes(engine);
  sub->add_option("--to", args->to, "Folder")->needs(list);
  sub->group("");  // internal: not shown in help
}

void add_sweep(CLI::App& app, Command& chosen) {
  add(app, chosen, "sweep", "End what ranks have left behind on this node (started by `ptrain`)",
      &cmd_sweep, std::make_shared<SweepArguments>())
      ->group("");  // internal: not shown in help
}

void add_guard(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<GuardArguments>();
  auto* sub = add(app, chosen, "guard",
                  "Have a job started again whose script's node is lost (started by `ptrain`)",
                  &cmd_guard, args);
  sub->add_option("--job", args->job, "Number of the job")->required();
  sub->group("");  // internal: not shown in help
}

void add_worker(CLI::App& app, Command& chosen) {
  auto args = std::make_shared<WorkerArguments>();
  auto* sub =
      add(app, chosen, "worker", "Run one rank (started by run and resume)", &cmd_worker, args);
  sub->add_option("--request", args->request, "Request: JSON, or a file of it")->required();
  sub->group("");  // internal: not shown in help
}

CLI::App* add_inspect(CLI::App& app, Command& chosen, const char* name, const char* description,
                      Result<ExitCode> (*call)(const InspectArguments&),
                      std::shared_ptr<InspectArguments> args) {
  auto* sub = add(app, chosen, name, description, call, args);
  sub->add_option("run", args->run, "Run directory")->required();
  return sub;
}

void add_inspections(CLI::App& app, Command& chosen) {
  auto status = std::make_shared<InspectArguments>();
  add_inspect(app, chosen, "status", "Say how a run stands", &cmd_status, status)
      ->add_flag("--json", status->json, "Print as JSON");
  auto logs = std::make_shared<InspectArguments>();
  auto* sub = add_inspect(app, chosen, "logs", "Print the ranks' logs", &cmd_logs, logs);
  sub->add_option("--rank", logs->rank, "Of this rank only")
      ->check(whole_number(0, kMostRanks - 1));
  auto* attempt = sub->add_option("--attempt", logs->attempt, "Of this attempt (default: the last)")
                      ->check(whole_number(1, kMostAttempts));
  sub->add_flag("-f,--follow", logs->follow, "Go on with what comes, until the run ends")
      ->excludes(attempt);
  add_inspect(app, chosen, "explain", "Say why a run has its plan, and what ruled out others",
              &cmd_explain, std::make_shared<InspectArguments>());
  auto stop = std::make_shared<InspectArguments>();
  add_inspect(app, chosen, "stop", "Stop a run after its step, with a checkpoint", &cmd_stop, stop)
      ->add_flag("--now", stop->now, "At once, without a checkpoint");
  auto list = std::make_shared<InspectArguments>();
  list->run = "runs";
  sub = add(app, chosen, "list", "List the runs in a folder", &cmd_list, list);
  sub->add_option("folder", list->run, "Folder of runs (default: runs)");
  sub->add_flag("--json", list->json, "Print as JSON, one run a line");
}

}  // namespace

namespace {

// CLI11 only complains that a subcommand is missing; this names the word and the nearest command.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  std::string list;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == word) return "";
    if (sub->get_group().empty()) continue;
    names.push_back(sub->get_name());
    list += (list.empty() ? "" : ", ") + sub->get_name();
  }
  const std::string nearest = recipe::nearest(word, names);
  return "ptrain: unknown command '" + word + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") + "\n  commands: " + list;
}

// A variable of the shell that is not set gives "": no option means that.
void refuse_empty_texts(CLI::App& app) {
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : sub->get_options())
      if (option->get_items_expected_max() > 0)
        option->check([](const std::string& text) {
          return std::string(text.empty() ? "is empty; leave it out or give a value" : "");
        });
}

}  // namespace

Parsed parse(int argc, const char* const* argv) {
  CLI::App app("Trains large language models from one recipe.", "ptrain");
  Parsed parsed;
  app.set_version_flag("--version", std::string(run::build_id()));
  app.require_subcommand(1);
  add_plan(app, parsed.command);
  add_run(app, parsed.command);
  add_resume(app, parsed.command);
  add_inspections(app, parsed.command);
  add_data(app, parsed.command);
  add_export(app, parsed.command);
  add_schedule(app, parsed.command);
  add_report(app, parsed.command);
  add_completion(app, parsed.command);
  add_supervise(app, parsed.command);
  add_doctor(app, parsed.command);
  add_preflight_node(app, parsed.command);
  add_seats(app, parsed.command);
  add_local_copy(app, parsed.command);
  add_sweep(app, parsed.command);
  add_guard(app, parsed.command);
  add_worker(app, parsed.command);
  refuse_empty_texts(app);
  if (argc > 1 && *argv[1] != '-') parsed.text = unknown_command(app, argv[1]);
  parsed.code = static_cast<int>(ExitCode::kUsage);
  if (!parsed.text.empty()) return parsed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    parsed.command = nullptr;
    parsed.text = code == 0 ? out.str() : "ptrain: " + err.str();
    parsed.code = code == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return parsed;
}

}  // namespace ptrain::cli
