#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/program/memory.h"
#include "core/recipe/recipe.h"

namespace ptrain::run {

struct RankPlace {
  int rank = 0;
  std::string node;
  int slot = 0;
  int gpu = -1;  // -1: none
  bool operator==(const RankPlace&) const = default;
};

// Ranks whose programs are equal, and the bytes that each is predicted to hold at its peak.
struct ClassPrediction {
  int count = 0;
  std::string program_hash;
  program::BytesByClass bytes{};
  bool operator==(const ClassPrediction&) const = default;
};

struct Prediction {
  double step_s = 0, low_s = 0, high_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;        // 0..1
  double bubble = 0;     // share of the step in which the compute lane idles, 0..1
  double exposed_s = 0;  // communication that compute waits for
  std::vector<ClassPrediction> classes;
  bool operator==(const Prediction&) const = default;
};

struct Rejection {
  std::string reason;
  int count = 0;
  std::string nearest;  // the layout that came closest
  bool operator==(const Rejection&) const = default;
};

struct ShapePlan {
  std::string name;
  mesh::Layout layout;
  int threads = 1;  // of one rank
  Prediction predicted;
  std::vector<Rejection> rejected;
  bool operator==(const ShapePlan&) const = default;
};

// The checkpoint, of another run or program, that a run goes on from.
struct Origin {
  std::string checkpoint;   // folder; empty: the run begins from initial values
  std::int64_t step = 0;    // finished there
  std::int64_t tokens = 0;  // target tokens trained on there
  bool optimizer = false;   // its optimizer state is taken over
  bool data = false;        // its place in the data is taken over
  bool operator==(const Origin&) const = default;
};

// plan.json: all that a run needs, and what it was predicted to do. Programs are compiled from it
// again.
struct Plan {
  int version = 1;
  std::string build;
  std::string recipe_hash;         // of its values (identity_of in launcher/recipe)
  recipe::Recipe recipe;           // resolved
  std::string recipe_folder;       // absolute; what relative paths in the recipe start from
  std::string cluster;             // name
  double peak_flops_per_rank = 0;  // of one rank's threads, for MFU
  std::vector<RankPlace> ranks;
  std::vector<ShapePlan> shapes;
  Origin origin;
  bool operator==(const Plan&) const = default;
};

// Different nodes of its ranks; at least 1.
int num_nodes(const Plan& plan);

nlohmann::json to_json(const Plan& plan);
Result<Plan> plan_from_json(const nlohmann::json& json);
// The text of plan.json, and the plan of such a text.
std::string to_text(const Plan& plan);
Result<Plan> plan_from_text(std::string_view text);

}  // namespace ptrain::run
