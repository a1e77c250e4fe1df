#include "launcher/supervise/secrets.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ptrain::supervise {

namespace {

constexpr std::size_t kShortest = 6;
constexpr std::string_view kWords[] = {"TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"};

bool sounds_secret(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

}  // namespace

std::vector<std::string> secrets_in(const std::vector<std::string>& environment) {
  std::vector<std::string> secrets;
  for (const auto& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || entry.size() - equals - 1 < kShortest) continue;
    if (sounds_secret(entry.substr(0, equals))) secrets.push_back(entry.substr(equals + 1));
  }
  // A secret that holds another one goes first.
  std::ranges::sort(secrets, std::greater{}, &std::string::size);
  return secrets;
}

std::string without_secrets(std::string text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at))
      text.replace(at, secret.size(), "***");
  return text;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

}  // namespace ptrain::supervise
