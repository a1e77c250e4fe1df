#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::cli {

// stdout is data, stderr is talk. Both pass through here; bytes that steer a terminal are replaced.
void print(std::string_view text);       // to stdout, as it is (data, JSON)
void print_line(std::string_view text);  // to stdout, escaped, with a newline
void say(std::string_view text);         // to stderr, escaped, with a newline

// "ptrain: FILE:LINE:COLUMN: message" and its hint, to stderr; returns the exit code.
int report(const Error& error);

// Control characters except newline and tab as '?', so that text from files cannot steer a
// terminal.
std::string escaped(std::string_view text);

}  // namespace ptrain::cli
