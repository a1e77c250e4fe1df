#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/words.h"

namespace ptrain::cli {

namespace {

std::string names_of(const std::vector<CommandWords>& commands) {
  std::string names;
  for (const auto& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string options_of(const CommandWords& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

// What is quoted for a shell in '...'; bash, zsh and fish agree on it.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Options after a dash, else files and folders: recipes, runs, checkpoints.
std::string bash(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const auto& command : commands)
    cases += fmt::format("    {}) words='{}' ;;\n", command.name, options_of(command));
  return fmt::format(R"(_ptrain() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=()
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
}}
complete -o default -o bashdefault -F _ptrain ptrain
)",
                     names_of(commands), cases);
}

// zsh reads completions of bash.
std::string zsh(const std::vector<CommandWords>& commands) {
  return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash(commands);
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const auto& command : commands) {
    text += fmt::format("complete -c ptrain -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, quoted(command.description));
    for (const auto& option : command.options)
      for (const auto& name : option.names)
        if (name.starts_with("--"))
          text +=
              fmt::format("complete -c ptrain -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                          command.name, name.substr(2), option.takes_value ? " -r" : "",
                          quoted(option.description));
  }
  return text;
}

// Backslashes, and dots and quotes that would begin a request, are not text to troff.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string paragraph(const OptionWords& option) {
  std::string head = option.names.empty() ? option.place : "";
  if (!option.names.empty()) head = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.names.empty() && option.takes_value) head += " VALUE";
  const std::string end = option.required ? " (required)" : "";
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", troff(head), end, troff(option.description));
}

}  // namespace

std::string completion(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "fish") return fish(commands);
  return shell == "zsh" ? zsh(commands) : bash(commands);
}

std::string man_page(const std::vector<CommandWords>& commands) {
  std::string text =
      ".TH PTRAIN 1\n.SH NAME\nptrain \\- trains large language models from one recipe\n"
      ".SH SYNOPSIS\n.B ptrain\n.I COMMAND\n[arguments]\n.SH COMMANDS\n";
  for (const auto& command : commands) {
    text += fmt::format(".SS {}\n{}.\n", command.name, troff(command.description));
    for (const auto& option : command.options) text += paragraph(option);
    if (!command.footer.empty()) text += ".PP\n" + troff(command.footer) + "\n";
  }
  return text +
         ".SH EXIT STATUS\n0: done. 1: a bug of ptrain. 2: the command line or the recipe is "
         "wrong. 3: something outside is missing. 4: no layout fits. 10 to 16: the run failed. 20, "
         "21: it stopped, with a checkpoint where it had begun to train. 22: it failed again "
         "without "
         "progress. 128 and more: a signal ended it.\n";
}

}  // namespace ptrain::cli
