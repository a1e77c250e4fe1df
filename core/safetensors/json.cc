#include "core/safetensors/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace ptrain::safetensors {
namespace {

using nlohmann::json;

// Watches the parser; values that break a rule are dropped, so that none is kept that nests deeply.
class Watcher {
 public:
  explicit Watcher(int depth) : depth_(depth) {}

  bool operator()(int depth, json::parse_event_t event, json& value) {
    if (depth > depth_) complain(fmt::format("nests deeper than {} levels", depth_));
    if (event == json::parse_event_t::object_start) names_.emplace_back();
    if (event == json::parse_event_t::object_end && !names_.empty()) names_.pop_back();
    if (event == json::parse_event_t::key) check_name(value.get_ref<const std::string&>());
    return problem_.empty();
  }
  const std::string& problem() const { return problem_; }

 private:
  void check_name(const std::string& name) {
    if (!is_printable(name)) return complain("has a name that is not printable ASCII");
    if (!names_.empty() && !names_.back().insert(name).second)
      complain(fmt::format("has '{}' twice", name));
  }
  void complain(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  int depth_;
  std::vector<std::set<std::string>> names_;  // of the objects that are open
  std::string problem_;
};

}  // namespace

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

Result<json> parse_object(std::string_view text, std::string_view what, int depth) {
  Watcher watcher(depth);
  json object = json::parse(text, std::ref(watcher), false);
  if (!watcher.problem().empty())
    return fail(ExitCode::kUnusable, fmt::format("{} {}", what, watcher.problem()));
  if (!object.is_object())
    return fail(ExitCode::kUnusable, fmt::format("{} is no JSON object", what));
  return object;
}

}  // namespace ptrain::safetensors
