#include "launcher/plan/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/mesh/stages.h"
#include "core/recipe/stage_lists.h"
#include "core/schedule/csv.h"

namespace ptrain::plan {
namespace {

double flops_of(const model::LayerSpec& layer, std::int64_t sequence) {
  double flops = 0;
  for (const model::Segment& segment : layer.segments)
    flops += segment.flops_per_token +
             segment.flops_per_attended_pair * static_cast<double>(sequence) / 2;
  return flops;
}

// Of a split of the layers up to one: the longest stage, then how uneven all are. Smaller is
// better.
using Score = std::pair<double, double>;
constexpr Score kNone{std::numeric_limits<double>::infinity(), 0};

// By dynamic programming: best[n] is that of the first n layers in so many stages, cut[n] where the
// last of these begins.
class Splitter {
 public:
  explicit Splitter(const std::vector<double>& flops) : sums_(flops.size() + 1, 0) {
    std::partial_sum(flops.begin(), flops.end(), sums_.begin() + 1);
  }

  std::vector<int> split(int num_stages) {
    best_.assign(sums_.size(), kNone);
    best_[0] = {0, 0};
    std::vector<std::vector<std::size_t>> cuts;
    for (int stage = 0; stage < num_stages; ++stage) cuts.push_back(add_stage());
    std::vector<int> counts;
    std::size_t end = sums_.size() - 1;
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
      counts.push_back(static_cast<int>(end - (*cut)[end]));
      end = (*cut)[end];
    }
    std::ranges::reverse(counts);
    return counts;
  }

 private:
  std::vector<std::size_t> add_stage() {
    std::vector<Score> next(sums_.size(), kNone);
    std::vector<std::size_t> cut(sums_.size(), 0);
    for (std::size_t end = 1; end < sums_.size(); ++end)
      for (std::size_t begin = 0; begin < end; ++begin) {
        if (best_[begin] == kNone) continue;
        const double flops = sums_[end] - sums_[begin];
        const Score score{std::max(best_[begin].first, flops), best_[begin].second + flops * flops};
        if (score < next[end]) next[end] = score, cut[end] = begin;
      }
    best_ = std::move(next);
    return cut;
  }

  std::vector<double> sums_;  // of the layers before
  std::vector<Score> best_;
};

// One entry a stage.
template <class T>
Result<std::vector<T>> list_for(const char* field, recipe::StageList<T> list, int num_stages) {
  if (!list) return fail(ExitCode::kUsage, fmt::format("{}: {}", field, list.error()));
  if (std::cmp_equal(list->size(), num_stages)) return std::move(*list);
  return fail(ExitCode::kUsage,
              fmt::format("{} has {} {}, but pp x virtual is {}", field, list->size(),
                          list->size() == 1 ? "entry" : "entries", num_stages),
              fmt::format("give {} entries, or leave it out", num_stages));
}

}  // namespace

Result<std::vector<int>> balanced_stages(const model::Architecture& architecture,
                                         std::int64_t sequence, int num_stages, SpreadEnds spread) {
  const auto num_layers = static_cast<int>(architecture.layers.size());
  const int most = num_layers - (spread.embedding ? 1 : 0);
  if (num_stages > most)
    return fail(ExitCode::kUsage,
                fmt::format("{} stages, but the model has {} layers, embedding and head counted{}",
                            num_stages, num_layers,
                            spread.embedding ? ", of which the first is shared by all" : ""),
                fmt::format("pp x virtual may be {} at most", most));
  std::vector<double> flops;
  for (const auto& layer : architecture.layers) flops.push_back(flops_of(layer, sequence));
  if (spread.head) flops.back() = 0;
  if (!spread.embedding) return Splitter(flops).split(num_stages);
  flops.erase(flops.begin());
  std::vector<int> counts = Splitter(flops).split(num_stages);
  counts.front() += 1;
  return counts;
}

Result<std::vector<int>> stages_from(const std::string& text, int num_layers, int num_stages) {
  auto counts = recipe::stage_layers_in(text);
  if (!counts) return fail(ExitCode::kUsage, fmt::format("parallel.stages: {}", counts.error()));
  const auto sum = std::accumulate(counts->begin(), counts->end(), std::int64_t{0});
  if (std::cmp_equal(counts->size(), num_stages) && sum == num_layers) return std::move(*counts);
  return fail(
      ExitCode::kUsage,
      fmt::format("parallel.stages names {} layers in {} stages, but pp x virtual is {} and the "
                  "model has {} layers, embedding and head counted",
                  sum, counts->size(), num_stages, num_layers),
      fmt::format("give {} counts that add up to {}, or leave it out", num_stages, num_layers));
}

Result<std::vector<recipe::Recompute>> stage_recompute_from(const std::string& text,
                                                            int num_stages) {
  return list_for("parallel.stage_recompute", recipe::stage_recompute_in(text), num_stages);
}

Result<std::vector<DType>> stage_dtypes_from(const std::string& text, int num_stages) {
  return list_for("parallel.stage_dtype", recipe::stage_dtypes_in(text), num_stages);
}

std::vector<DType> layer_dtypes_of(const mesh::Layout& layout, const Space& space) {
  if (space.fixed.stage_dtype.empty() || space.architecture == nullptr) return {};
  const auto words = stage_dtypes_from(space.fixed.stage_dtype, layout.num_stages());
  const auto stages =
      mesh::layers_of_stages(layout, static_cast<int>(space.architecture->layers.size()));
  std::vector<DType> dtypes;
  for (std::size_t stage = 0; words && stages && stage < words->size(); ++stage)
    dtypes.resize(static_cast<std::size_t>((*stages)[stage].end), (*words)[stage]);
  return dtypes;
}

Result<std::vector<int>> stage_layers_of(const mesh::Layout& layout, const Space& space) {
  if (space.architecture == nullptr) return std::vector<int>{};
  const auto num_layers = static_cast<int>(space.architecture->layers.size());
  if (!space.fixed.stages.empty())
    return stages_from(space.fixed.stages, num_layers, layout.num_stages());
  const int num_stages = layout.num_stages();
  const auto balanced = [&] {
    return balanced_stages(*space.architecture, space.sequence, num_stages,
                           {layout.spread_embedding, layout.spread_head});
  };
  if (space.balanced == nullptr) return balanced();
  const auto known = space.balanced->find(num_stages);
  if (known != space.balanced->end()) return known->second;
  PTRAIN_TRY(auto layers, balanced());
  return space.balanced->emplace(num_stages, std::move(layers)).first->second;
}

int virtual_stages_of(const std::string& schedule_csv, int pp) {
  const auto schedule = schedule::from_csv(schedule_csv, "the schedule's file");
  return schedule ? std::max(1, schedule->num_stages / pp) : 1;
}

}  // namespace ptrain::plan
