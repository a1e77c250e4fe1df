#include "launcher/cluster/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "launcher/base/file.h"
#include "launcher/cluster/figures_json.h"
#include "launcher/recipe/yaml.h"

namespace ptrain::cluster {

namespace {

using Yaml = recipe::Node;

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kMaxNodes = 65536;

std::optional<double> number_of(const Yaml& node) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, error] = std::from_chars(node.text.data(), end, value);
  if (node.kind != Yaml::Kind::kScalar || node.quoted || error != std::errc() || stop != end)
    return std::nullopt;
  return value;
}

// Numbers become numbers, all other scalars texts.
nlohmann::json json_of(const Yaml& node) {
  nlohmann::json out = node.text;
  if (node.kind == Yaml::Kind::kMapping) {
    out = nlohmann::json::object();
    for (const Yaml& entry : node.children) out[entry.key] = json_of(entry);
  } else if (node.kind == Yaml::Kind::kSequence) {
    out = nlohmann::json::array();
    for (const Yaml& entry : node.children) out.push_back(json_of(entry));
  } else if (const auto value = number_of(node)) {
    out = *value;
  }
  return out;
}

// The deepest node on the way of the JSON pointer that `message` begins with.
const Yaml& node_at(const Yaml& root, const std::string& message) {
  std::istringstream keys(message.substr(0, message.find(' ')));
  std::string key;
  std::getline(keys, key, '/');  // a pointer begins with a slash
  const Yaml* node = &root;
  while (std::getline(keys, key, '/')) {
    const Yaml* below = node->child(key);
    if (below == nullptr) break;
    node = below;
  }
  return *node;
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Result<Cluster> cluster(const Yaml& root) const {
    PTRAIN_CHECK(keys(root, "the cluster", {"name", "nodes", "figures", "link"}));
    Cluster cluster;
    PTRAIN_TRY(cluster.name, text(root, "name"));
    PTRAIN_CHECK(nodes(root, cluster));
    cluster = unmeasured(std::move(cluster.name), std::move(cluster.nodes));
    if (const Yaml* node = root.child("figures")) {
      PTRAIN_TRY(cluster.figures, figures(*node));
    }
    if (root.child("link") != nullptr) {
      PTRAIN_TRY(cluster.link, transfer(root, "link"));
    }
    return cluster;
  }

 private:
  static tl::unexpected<Error> error(const Place& place, std::string message,
                                     std::string hint = "") {
    return fail(ExitCode::kUsage, std::move(message), std::move(hint), place);
  }

  Status keys(const Yaml& node, std::string_view what,
              std::initializer_list<std::string_view> allowed) const {
    if (node.kind != Yaml::Kind::kMapping)
      return error(node.place, fmt::format("{} must be a mapping", what));
    for (const Yaml& entry : node.children)
      if (std::find(allowed.begin(), allowed.end(), entry.key) == allowed.end())
        return error(entry.key_place,
                     fmt::format("{} has no field '{}'", what, recipe::shown(entry.key)),
                     fmt::format("it has: {}", fmt::join(allowed, ", ")));
    return {};
  }

  Result<std::string> text(const Yaml& map, const char* key) const {
    const Yaml* node = map.child(key);
    if (node == nullptr) return error(map.place, fmt::format("field '{}' is missing", key));
    if (node->kind != Yaml::Kind::kScalar || node->text.empty())
      return error(node->place, fmt::format("'{}' must be a text", key));
    return node->text;
  }

  Result<double> positive(const Yaml& map, const char* key, double highest = 1e30) const {
    const Yaml* node = map.child(key);
    if (node == nullptr) return error(map.place, fmt::format("field '{}' is missing", key));
    const auto value = number_of(*node);
    if (!value || !std::isfinite(*value) || *value <= 0 || *value > highest)
      return error(node->place,
                   fmt::format("'{}' must be a number above zero and at most {}", key, highest));
    return *value;
  }

  Result<int> count(const Yaml& map, const char* key) const {
    PTRAIN_TRY(const double value, positive(map, key, kMaxNodes));
    if (value != std::floor(value))
      return error(map.child(key)->place, fmt::format("'{}' must be a whole number", key));
    return static_cast<int>(value);
  }

  Status nodes(const Yaml& root, Cluster& cluster) const {
    const Yaml* list = root.child("nodes");
    if (list == nullptr || list->kind != Yaml::Kind::kSequence || list->children.empty())
      return error(root.place, "'nodes' must list at least one node");
    std::set<std::string> names;
    for (const Yaml& entry : list->children) {
      PTRAIN_TRY(const auto copies, node(entry));
      if (static_cast<double>(cluster.nodes.size() + copies.size()) > kMaxNodes)
        return error(entry.place, fmt::format("more than {} nodes in all", kMaxNodes));
      for (const auto& copy : copies) {
        if (!names.insert(copy.name).second)
          return error(entry.place,
                       fmt::format("a node '{}' is there already", recipe::shown(copy.name)),
                       "give each node a name of its own");
        cluster.nodes.push_back(copy);
      }
    }
    return {};
  }

  // One entry of the list, as often as it counts.
  Result<std::vector<cluster::Node>> node(const Yaml& entry) const {
    PTRAIN_CHECK(
        keys(entry, "a node", {"name", "count", "cores", "memory_gib", "gpus", "gpu_memory_gib"}));
    cluster::Node node;
    PTRAIN_TRY(node.name, text(entry, "name"));
    PTRAIN_TRY(node.num_cores, count(entry, "cores"));
    PTRAIN_TRY(const double gib, positive(entry, "memory_gib", 1e6));
    node.memory_bytes = static_cast<std::int64_t>(gib * kBytesPerGib);
    if (entry.child("gpus") != nullptr || entry.child("gpu_memory_gib") != nullptr) {
      PTRAIN_TRY(node.num_gpus, count(entry, "gpus"));
      PTRAIN_TRY(const double gpu_gib, positive(entry, "gpu_memory_gib", 1e6));
      node.gpu_memory_bytes = static_cast<std::int64_t>(gpu_gib * kBytesPerGib);
    }
    if (entry.child("count") == nullptr) return std::vector{node};
    PTRAIN_TRY(const int num_copies, count(entry, "count"));
    std::vector<cluster::Node> copies(static_cast<std::size_t>(num_copies), node);
    for (int copy = 0; num_copies > 1 && copy < num_copies; ++copy)
      copies[static_cast<std::size_t>(copy)].name = fmt::format("{}-{}", node.name, copy);
    return copies;
  }

  Result<TransferCost> transfer(const Yaml& map, const char* key) const {
    const Yaml* node = map.child(key);
    if (node == nullptr) return error(map.place, fmt::format("field '{}' is missing", key));
    PTRAIN_CHECK(keys(*node, key, {"latency_s", "bytes_per_s"}));
    TransferCost cost;
    PTRAIN_TRY(cost.latency_s, positive(*node, "latency_s"));
    PTRAIN_TRY(cost.bytes_per_s, positive(*node, "bytes_per_s"));
    return cost;
  }

  Result<Figures> figures(const Yaml& node) const {
    auto figures = figures_from_json(json_of(node));
    if (!figures)
      return error(node_at(node, figures.error().message).place,
                   "figures" + figures.error().message);
    figures->source = "given by " + path_;
    return *figures;
  }

  std::string path_;
};

}  // namespace

Result<Cluster> cluster_from_text(const std::string& text, const std::string& path) {
  std::vector<recipe::Violation> violations;
  const Yaml root = recipe::parse_yaml(text, path, violations);
  if (!violations.empty())
    return fail(ExitCode::kUsage, violations.front().message,
                "docs/cluster-file.md describes every field", violations.front().place);
  return Reader(path).cluster(root);
}

Result<Cluster> read_cluster(const std::string& path) {
  const auto text = read_file(path, recipe::kMostYamlBytes);
  if (text) return cluster_from_text(*text, path);
  return fail(ExitCode::kUsage, "cannot read the cluster file " + text.error().message,
              "give an existing file by --cluster FILE or cluster.file");
}

}  // namespace ptrain::cluster
