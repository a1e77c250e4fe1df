#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// What figures are valid for: the same processor, as many ranks, the same build.
struct ProbeKey {
  std::string processor;
  int num_ranks = 1;
  std::string build;
};

// Where the figures of a key are kept.
std::string probe_path(const std::string& cache_folder, const ProbeKey& key);

// Measures with `num_ranks` ranks of one thread and writes the result (figures_json.h) to `output`.
using ProbeRunner = std::function<Status(int num_ranks, const std::string& output)>;

struct ProbeInput {
  std::string cache_folder;
  ProbeKey key;
  ProbeRunner runner;  // empty: nothing can be measured here
  bool again = false;  // measure although figures are kept
};

// The kept figures of the key; where there are none (or damaged ones) the runner measures. When
// that fails, or there is no runner, default figures; `notes` then says why.
Figures probed_figures(const ProbeInput& input, std::vector<std::string>& notes);

}  // namespace ptrain::cluster
