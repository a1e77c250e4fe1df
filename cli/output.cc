#include "cli/output.h"

#include <fmt/format.h>

#include <cstdio>

#include "launcher/base/printable.h"

namespace ptrain::cli {

namespace {

void write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

// A message that names its file itself needs no more than the line.
std::string place_text(const Place& place, const std::string& message) {
  if (place.file.empty()) return "";
  if (place.line == 0 && message.find(place.file) != message.npos) return "";
  if (place.line == 0) return place.file + ": ";
  return fmt::format("{}:{}:{}: ", place.file, place.line, place.column);
}

}  // namespace

std::string escaped(std::string_view text) { return printable(text, "\n\t"); }

void print(std::string_view text) { write(stdout, text); }
void print_line(std::string_view text) { write(stdout, escaped(text) + "\n"); }
void say(std::string_view text) { write(stderr, escaped(text) + "\n"); }

int report(const Error& error) {
  say(fmt::format("ptrain: {}{}", place_text(error.place, error.message), error.message));
  if (!error.hint.empty()) say("  " + error.hint);
  return static_cast<int>(error.code);
}

}  // namespace ptrain::cli
