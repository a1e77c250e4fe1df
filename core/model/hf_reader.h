#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace ptrain::model {

// Reads the fields of one JSON object, notes those it was asked for, and collects what is wrong
// with them. `prefix` begins the names in messages.
class HfReader {
 public:
  HfReader(const nlohmann::json& object, std::string prefix, std::vector<std::string>& reasons)
      : object_(object), prefix_(std::move(prefix)), reasons_(reasons) {}

  // The field, if it is there; it may be null.
  const nlohmann::json* find(const std::string& name);
  // A field that is there sets `value`, null to zero; one of another kind is a reason.
  void read(const std::string& name, std::int64_t& value);
  void read(const std::string& name, double& value);
  // The same; a 0 that the file gives is a reason, because recipes mean `auto` by it.
  void read_positive(const std::string& name, double& value);
  void read(const std::string& name, bool& value);
  void read(const std::string& name, std::string& value);

  void refuse(const std::string& name, const std::string& why);
  std::string path_of(const std::string& name) const { return prefix_ + name; }
  // Whether somebody asked for this name.
  bool knows(const std::string& name) const { return asked_.contains(name); }
  // A sentence for each name that nobody asked for, with the nearest one that somebody did.
  std::vector<std::string> unused() const;

 private:
  void wrong_kind(const std::string& name, const nlohmann::json& found, const char* wanted);

  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<std::string>& reasons_;
  std::set<std::string> asked_;
};

}  // namespace ptrain::model
