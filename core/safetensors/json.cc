#include "core/safetensors/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ptrain::safetensors {
namespace {

using nlohmann::json;

// Reads a text once before it becomes a value, and keeps nothing of it. A parser with a callback
// would look over the whole outer object at each inner one's end.
class Watcher : public nlohmann::json_sax<json> {
 public:
  explicit Watcher(std::size_t depth) : depth_(depth) {}
  const std::string& problem() const { return problem_; }

  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!is_printable(name)) return complain("has a name that is not printable ASCII");
    if (names_.back().insert(name).second) return true;
    return complain(fmt::format("has '{}' twice", shown(name)));
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  bool open() {
    names_.emplace_back();
    return names_.size() <= depth_ || complain(fmt::format("nests deeper than {} levels", depth_));
  }
  bool close() {
    names_.pop_back();
    return true;
  }
  bool complain(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::size_t depth_;
  std::vector<std::set<std::string>> names_;  // of the objects and, empty, arrays that are open
  std::string problem_;
};

}  // namespace

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  return name.size() <= kLongest ? std::string(name)
                                 : std::string(name.substr(0, kLongest)) + "...";
}

Result<json> parse_object(std::string_view text, std::string_view what, int depth) {
  Watcher watcher(static_cast<std::size_t>(depth));
  json::sax_parse(text, &watcher);
  if (!watcher.problem().empty())
    return fail(ExitCode::kUnusable, fmt::format("{} {}", what, watcher.problem()));
  json object = json::parse(text, nullptr, false);
  if (!object.is_object())
    return fail(ExitCode::kUnusable, fmt::format("{} is no JSON object", what));
  return object;
}

}  // namespace ptrain::safetensors
