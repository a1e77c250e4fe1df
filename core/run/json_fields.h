#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::run {

// JSON has no number for NaN and infinities: they are written as the strings "nan", "inf", "-inf".
nlohmann::json number(double value);

// The same for every number inside `json`, so that a dump loses nothing.
nlohmann::json with_finite_numbers(const nlohmann::json& json);

// One line of text; bytes that are not UTF-8 are replaced, so writing never fails.
std::string dump_line(const nlohmann::json& json);

// JSON text whose brackets nest deeper than `max_depth` is refused: values are walked recursively.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what, int max_depth = 64);

// Takes typed fields out of an object; the first that is missing or has another type is kept as the
// error.
class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, std::string what);

  FieldReader& get(const char* name, std::string& value);
  FieldReader& get(const char* name, bool& value);
  FieldReader& get(const char* name, double& value);  // reads what number() wrote
  FieldReader& get(const char* name, int& value);     // refuses fractions and overflow
  FieldReader& get(const char* name, std::int64_t& value);

  // The field itself, an array or an object; null when it is missing or of another type.
  const nlohmann::json& array(const char* name);
  const nlohmann::json& object(const char* name);

  // Keeps `error` unless an earlier one is kept.
  void refuse(std::string message);
  void keep(const Error& error);
  Status status() const;

 private:
  const nlohmann::json* field(const char* name);

  const nlohmann::json& object_;
  std::string what_;
  Status status_;
};

}  // namespace ptrain::run
