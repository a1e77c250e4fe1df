#include "cli/output.h"

#include <fmt/format.h>

#include <cstdio>

namespace ptrain::cli {

namespace {

void write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

std::string place_text(const Place& place) {
  if (place.file.empty()) return "";
  if (place.line == 0) return place.file + ": ";
  return fmt::format("{}:{}:{}: ", place.file, place.line, place.column);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == 127) c = '?';
  return result;
}

void print(std::string_view text) { write(stdout, text); }
void print_line(std::string_view text) { write(stdout, escaped(text) + "\n"); }
void say(std::string_view text) { write(stderr, escaped(text) + "\n"); }

int report(const Error& error) {
  say(fmt::format("ptrain: {}{}", place_text(error.place), error.message));
  if (!error.hint.empty()) say("  " + error.hint);
  return static_cast<int>(error.code);
}

}  // namespace ptrain::cli
