#include "core/run/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace ptrain::run {

namespace {

const nlohmann::json& null_json() {
  static const nlohmann::json null;
  return null;
}

int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return deepest;
}

}  // namespace

nlohmann::json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

nlohmann::json with_finite_numbers(const nlohmann::json& json) {
  if (json.is_number_float()) return number(json.get<double>());
  if (!json.is_structured()) return json;
  nlohmann::json copy = json;
  for (auto& item : copy) item = with_finite_numbers(item);
  return copy;
}

std::string dump_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<nlohmann::json> parse_json(std::string_view text, std::string_view what, int max_depth) {
  if (nesting(text) > max_depth)
    return fail(ExitCode::kUsage, fmt::format("{} nests deeper than {} levels", what, max_depth));
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(ExitCode::kUsage, fmt::format("{} is not JSON", what));
  return json;
}

FieldReader::FieldReader(const nlohmann::json& object, std::string what)
    : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) refuse("is not a JSON object");
}

void FieldReader::refuse(std::string message) {
  if (status_) status_ = fail(ExitCode::kUsage, fmt::format("{}: {}", what_, message));
}

void FieldReader::keep(const Error& error) {
  if (status_) status_ = tl::unexpected<Error>(error);
}

Status FieldReader::status() const { return status_; }

const nlohmann::json* FieldReader::field(const char* name) {
  if (!status_) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  refuse(fmt::format("the field '{}' is missing", name));
  return nullptr;
}

FieldReader& FieldReader::get(const char* name, std::string& value) {
  const auto* json = field(name);
  if (json == nullptr) return *this;
  if (json->is_string())
    value = json->get<std::string>();
  else
    refuse(fmt::format("the field '{}' is not a string", name));
  return *this;
}

FieldReader& FieldReader::get(const char* name, bool& value) {
  const auto* json = field(name);
  if (json == nullptr) return *this;
  if (json->is_boolean())
    value = json->get<bool>();
  else
    refuse(fmt::format("the field '{}' is neither true nor false", name));
  return *this;
}

FieldReader& FieldReader::get(const char* name, double& value) {
  const auto* json = field(name);
  if (json == nullptr) return *this;
  if (json->is_number())
    value = json->get<double>();
  else if (*json == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else if (*json == "inf")
    value = std::numeric_limits<double>::infinity();
  else if (*json == "-inf")
    value = -std::numeric_limits<double>::infinity();
  else
    refuse(fmt::format("the field '{}' is not a number", name));
  return *this;
}

FieldReader& FieldReader::get(const char* name, std::int64_t& value) {
  const auto* json = field(name);
  if (json == nullptr) return *this;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (json->is_number_unsigned() && json->get<std::uint64_t>() > kMax)
    refuse(fmt::format("the field '{}' is too large", name));
  else if (json->is_number_integer())
    value = json->get<std::int64_t>();
  else
    refuse(fmt::format("the field '{}' is not a whole number", name));
  return *this;
}

FieldReader& FieldReader::get(const char* name, int& value) {
  std::int64_t wide = value;
  get(name, wide);
  if (wide != static_cast<int>(wide))
    refuse(fmt::format("the field '{}' is too large", name));
  else
    value = static_cast<int>(wide);
  return *this;
}

const nlohmann::json& FieldReader::array(const char* name) {
  const auto* json = field(name);
  if (json != nullptr && !json->is_array())
    refuse(fmt::format("the field '{}' is not an array", name));
  return status_ ? *json : null_json();
}

const nlohmann::json& FieldReader::object(const char* name) {
  const auto* json = field(name);
  if (json != nullptr && !json->is_object())
    refuse(fmt::format("the field '{}' is not an object", name));
  return status_ ? *json : null_json();
}

}  // namespace ptrain::run
