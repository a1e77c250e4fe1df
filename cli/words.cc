#include "cli/words.h"

#include <CLI/CLI.hpp>

namespace ptrain::cli {

namespace {

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const auto& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const auto& name : option.get_snames()) words.names.push_back("-" + name);
  if (words.names.empty()) words.place = option.get_name();
  words.description = option.get_description();
  words.takes_value = option.get_items_expected_max() > 0;
  words.required = option.get_required();
  return words;
}

}  // namespace

std::vector<CommandWords> words_of(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    CommandWords command{sub->get_name(), sub->get_description(), sub->get_footer(), {}};
    for (const CLI::Option* option : sub->get_options())
      command.options.push_back(words_of(*option));
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace ptrain::cli
