#include "launcher/cluster/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "launcher/cluster/figures_json.h"

namespace ptrain::cluster {

namespace {

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kMaxNodes = 65536;

// Numbers become numbers, all other scalars texts; a repeated key would be lost, so it is marked.
nlohmann::json json_of(const YAML::Node& node) {
  nlohmann::json out;
  if (node.IsMap()) {
    out = nlohmann::json::object();
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      out[out.contains(key) ? key + " (again)" : key] = json_of(entry.second);
    }
  } else if (node.IsSequence()) {
    out = nlohmann::json::array();
    for (const YAML::Node& entry : node) out.push_back(json_of(entry));
  } else if (double value = 0; node.IsScalar() && YAML::convert<double>::decode(node, value)) {
    out = value;
  } else {
    out = node.IsScalar() ? node.Scalar() : "";
  }
  return out;
}

// The deepest node on the way of the JSON pointer that `message` begins with.
YAML::Node node_at(YAML::Node node, const std::string& message) {
  std::istringstream keys(message.substr(0, message.find(' ')));
  std::string key;
  std::getline(keys, key, '/');  // a pointer begins with a slash
  while (!node.IsScalar() && std::getline(keys, key, '/')) {
    YAML::Node below = node.IsSequence() ? node[std::stoul(key)] : node[key];
    if (!below) break;
    node.reset(below);
  }
  return node;
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Result<Cluster> cluster(const YAML::Node& root) const {
    PTRAIN_CHECK(keys(root, "the cluster", {"name", "nodes", "figures", "link"}));
    Cluster cluster;
    PTRAIN_TRY(cluster.name, text(root, "name"));
    PTRAIN_CHECK(nodes(root, cluster));
    cluster.figures = default_figures();
    cluster.link = default_link();
    if (root["figures"]) {
      PTRAIN_TRY(cluster.figures, figures(root["figures"]));
    }
    if (root["link"]) {
      PTRAIN_TRY(cluster.link, transfer(root, "link"));
    }
    return cluster;
  }

 private:
  tl::unexpected<Error> error(const YAML::Node& node, std::string message,
                              std::string hint = "") const {
    const YAML::Mark mark = node.Mark();
    return fail(ExitCode::kUsage, std::move(message), std::move(hint),
                {path_, mark.line + 1, mark.column + 1});
  }

  Status keys(const YAML::Node& node, std::string_view what,
              std::initializer_list<std::string_view> allowed) const {
    if (!node.IsMap()) return error(node, fmt::format("{} must be a mapping", what));
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const auto key = entry.first.Scalar();
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
        return error(entry.first, fmt::format("{} has no field '{}'", what, key),
                     fmt::format("it has: {}", fmt::join(allowed, ", ")));
      if (!seen.insert(key).second)
        return error(entry.first, fmt::format("field '{}' is given twice", key), "remove one");
    }
    return {};
  }

  Result<std::string> text(const YAML::Node& map, const char* key) const {
    const YAML::Node node = map[key];
    if (!node) return error(map, fmt::format("field '{}' is missing", key));
    if (!node.IsScalar() || node.Scalar().empty())
      return error(node, fmt::format("'{}' must be a text", key));
    return node.Scalar();
  }

  Result<double> positive(const YAML::Node& map, const char* key, double highest = 1e30) const {
    const YAML::Node node = map[key];
    if (!node) return error(map, fmt::format("field '{}' is missing", key));
    double value = 0;
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) ||
        value <= 0 || value > highest)
      return error(node,
                   fmt::format("'{}' must be a number above zero and at most {}", key, highest));
    return value;
  }

  Result<int> count(const YAML::Node& map, const char* key) const {
    PTRAIN_TRY(const double value, positive(map, key, kMaxNodes));
    if (value != std::floor(value))
      return error(map[key], fmt::format("'{}' must be a whole number", key));
    return static_cast<int>(value);
  }

  Status nodes(const YAML::Node& root, Cluster& cluster) const {
    const YAML::Node list = root["nodes"];
    if (!list || !list.IsSequence() || list.size() == 0)
      return error(root, "'nodes' must list at least one node");
    for (const YAML::Node& entry : list) {
      PTRAIN_CHECK(keys(entry, "a node", {"name", "count", "cores", "memory_gib"}));
      Node node;
      PTRAIN_TRY(node.name, text(entry, "name"));
      PTRAIN_TRY(node.num_cores, count(entry, "cores"));
      PTRAIN_TRY(const double gib, positive(entry, "memory_gib", 1e6));
      node.memory_bytes = static_cast<std::int64_t>(gib * kBytesPerGib);
      int copies = 1;
      if (entry["count"]) {
        PTRAIN_TRY(copies, count(entry, "count"));
      }
      for (int copy = 0; copy < copies; ++copy) {
        cluster.nodes.push_back(node);
        if (copies > 1) cluster.nodes.back().name = fmt::format("{}-{}", node.name, copy);
      }
    }
    return {};
  }

  Result<TransferCost> transfer(const YAML::Node& map, const char* key) const {
    const YAML::Node node = map[key];
    if (!node) return error(map, fmt::format("field '{}' is missing", key));
    PTRAIN_CHECK(keys(node, key, {"latency_s", "bytes_per_s"}));
    TransferCost cost;
    PTRAIN_TRY(cost.latency_s, positive(node, "latency_s"));
    PTRAIN_TRY(cost.bytes_per_s, positive(node, "bytes_per_s"));
    return cost;
  }

  Result<Figures> figures(const YAML::Node& node) const {
    auto figures = figures_from_json(json_of(node));
    if (!figures)
      return error(node_at(node, figures.error().message), "figures: " + figures.error().message);
    figures->source = "given by " + path_;
    return *figures;
  }

  std::string path_;
};

}  // namespace

Result<Cluster> cluster_from_text(const std::string& text, const std::string& path) {
  try {
    return Reader(path).cluster(YAML::Load(text));
  } catch (const YAML::Exception& exception) {
    return fail(ExitCode::kUsage, exception.msg, "",
                {path, exception.mark.line + 1, exception.mark.column + 1});
  }
}

Result<Cluster> read_cluster(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return fail(ExitCode::kUsage, fmt::format("cannot read the cluster file {}", path),
                "give an existing file by --cluster FILE or cluster.file");
  return cluster_from_text(text.str(), path);
}

}  // namespace ptrain::cluster
