#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ptrain::supervise {

// Fields of an event, which comes from a rank, or from a file that another version wrote or hands
// changed: one that is missing or of another type counts as not given.
std::string text_of(const nlohmann::json& fields, const char* name);
double number_of(const nlohmann::json& fields, const char* name, double otherwise = 0);
std::int64_t integer_of(const nlohmann::json& fields, const char* name, std::int64_t otherwise);
bool flag_of(const nlohmann::json& fields, const char* name);
// The texts of a list.
std::vector<std::string> texts_of(const nlohmann::json& fields, const char* name);

}  // namespace ptrain::supervise
