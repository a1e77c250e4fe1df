#pragma once

#include <string>
#include <vector>

namespace ptrain::supervise {

// The values of environment variables whose names sound like secrets (TOKEN, KEY, PASSWORD ...),
// "NAME=VALUE" each. Short ones would be found in everything, and are no secrets.
std::vector<std::string> secrets_in(const std::vector<std::string>& environment);

// The text with "***" in place of each of them.
std::string without_secrets(std::string text, const std::vector<std::string>& secrets);

// Of this process.
std::vector<std::string> own_environment();

}  // namespace ptrain::supervise
