#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "launcher/base/subprocess.h"

namespace ptrain::cluster {

// Clients of Slurm retry for long where no controller answers.
inline constexpr std::chrono::seconds kSlurmPatience{60};

// One of Slurm's commands as PATH has it; more arguments may stand before its name, for env.
base::Command slurm_command(std::vector<std::string> arguments);

// Runs it to its end: what it wrote. Errors (kEnvironment): it is not there, takes too long, or
// ends otherwise than with 0, and then in Slurm's own words.
Result<std::string> ask_slurm(std::vector<std::string> arguments,
                              std::chrono::seconds patience = kSlurmPatience);

// The lines of what a command said.
std::vector<std::string_view> lines_of(std::string_view output);

// Slurm's words without the name of the program before each line and the line breaks between.
std::string slurm_reason(std::string_view output);

// What follows "KEY=" in a line of `scontrol -o show`, up to the next blank; empty: not there.
std::string_view value_of(std::string_view line, std::string_view key);

}  // namespace ptrain::cluster
