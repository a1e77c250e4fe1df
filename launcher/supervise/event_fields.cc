#include "launcher/supervise/event_fields.h"

namespace ptrain::supervise {

using nlohmann::json;

std::string text_of(const json& fields, const char* name) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const json& fields, const char* name, double otherwise) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::int64_t integer_of(const json& fields, const char* name, std::int64_t otherwise) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                             : otherwise;
}

bool flag_of(const json& fields, const char* name) {
  const auto found = fields.find(name);
  return found != fields.end() && found->is_boolean() && found->get<bool>();
}

std::vector<std::string> texts_of(const json& fields, const char* name) {
  std::vector<std::string> out;
  const auto found = fields.find(name);
  if (found == fields.end() || !found->is_array()) return out;
  for (const auto& one : *found)
    if (one.is_string()) out.push_back(one.get<std::string>());
  return out;
}

}  // namespace ptrain::supervise
