#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ptrain::cli {

// The command line as data: what completions and the manual page are made from.
struct OptionWords {
  std::vector<std::string> names;  // --json; none: it is known by its place, as `place` says
  std::string place;               // RECIPE
  std::string description;
  bool takes_value = false;
  bool required = false;
};

struct CommandWords {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionWords> options;
};

// All commands that help shows.
std::vector<CommandWords> words_of(const CLI::App& app);

// The script that completes `ptrain` in a shell: bash, zsh or fish.
std::string completion(const std::string& shell, const std::vector<CommandWords>& commands);

// docs/ptrain.1
std::string man_page(const std::vector<CommandWords>& commands);

}  // namespace ptrain::cli
