#include "launcher/plan/parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "core/program/segments.h"
#include "launcher/plan/cost/action_cost.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;

// Seconds of actions, each kind of them asked once: a deep model repeats one block, and a step one
// micro-batch.
class Costs {
 public:
  explicit Costs(const CostContext& context) : context_(context) {
    for (const auto& layer : context.architecture.layers) alike_.push_back(first_alike(layer));
  }

  double operator()(const Action& action) {
    if (action.layer_first != action.layer_last) return action_seconds(action, context_);
    const auto key = key_of(action);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_.emplace(key, action_seconds(action, context_)).first->second;
  }

 private:
  // Kind, layer or group, and what else it depends on.
  template <class Text>
  using Key = std::tuple<Kind, int, Text, Text, Text>;

  Key<std::string_view> key_of(const Action& action) const {
    if (program::exchanges_within_call(action))
      return {action.kind, -1, action.attribute("kind"), action.attribute("axis"),
              action.attribute("token_bytes")};
    if (action.layer_first < 0)
      return {action.kind, action.group, action.attribute("axis"), "", ""};
    return {action.kind, alike_[static_cast<std::size_t>(action.layer_first)],
            action.attribute("from"), "", ""};
  }

  // The first layer that costs the same.
  int first_alike(const model::LayerSpec& layer) {
    const auto same = [&](int other) {
      const auto& first = context_.architecture.layers[static_cast<std::size_t>(other)];
      return first.held == layer.held && first.kind == layer.kind &&
             first.compute_dtype == layer.compute_dtype && first.stash == layer.stash &&
             first.segments == layer.segments;
    };
    const auto found = std::ranges::find_if(distinct_, same);
    if (found != distinct_.end()) return *found;
    return distinct_.emplace_back(static_cast<int>(alike_.size()));
  }

  const CostContext context_;
  std::vector<int> distinct_, alike_;
  std::map<Key<std::string>, double, std::less<>> known_;
};

}  // namespace

int rank_at_place(const mesh::Layout& layout, int place) {
  mesh::Coordinates first;
  first.pp = place;
  first.cp = layout.cp - 1;
  return mesh::rank_of(layout, first);
}

Result<std::vector<Part>> parts_of(const model::Architecture& whole, const mesh::Layout& layout) {
  std::vector<int> ranks;
  for (int place = 0; place < layout.pp; ++place) ranks.push_back(rank_at_place(layout, place));
  PTRAIN_TRY(auto architectures, mesh::parts_of(whole, layout, ranks));
  std::vector<Part> parts;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    auto buffers = mesh::plan_buffers(architectures[place], layout);
    parts.push_back({ranks[place], std::move(architectures[place]), std::move(buffers)});
  }
  return parts;
}

Result<program::Pipeline> pipeline_of(std::span<const Part> parts, const mesh::Layout& layout) {
  const auto num_layers = static_cast<int>(parts.front().architecture.layers.size());
  return program::pipeline_of(layout, num_layers, true);
}

Result<program::Program> compile_part(const Part& part, const mesh::Layout& layout,
                                      const program::Pipeline& pipeline, const std::string& shape) {
  const program::CompileInput input{
      .architecture = part.architecture, .layout = layout, .shape = shape, .pipeline = &pipeline};
  return program::compile(input, part.rank);
}

Result<std::vector<program::Program>> compile_parts(std::span<const Part> parts,
                                                    const mesh::Layout& layout,
                                                    const std::string& shape) {
  PTRAIN_TRY(const program::Pipeline pipeline, pipeline_of(parts, layout));
  std::vector<program::Program> programs;
  for (const Part& part : parts) {
    PTRAIN_TRY(programs.emplace_back(), compile_part(part, layout, pipeline, shape));
  }
  return programs;
}

Result<Timeline> run_on_clock(const ClockInput& input, std::span<const program::Program> programs) {
  std::vector<Costs> costs;
  for (const Part& part : input.parts)
    costs.emplace_back(CostContext{part.architecture, input.layout, part.buffers,
                                   input.cluster.figures, input.cluster.link, input.placement,
                                   input.sequence, input.attention,
                                   mesh::fullest_ranks(part.architecture, part.buffers)});
  SimulateOptions options;
  options.serial = !input.placement.overlaps;
  options.seconds = [&](const Action& action, int p) {
    return costs[static_cast<std::size_t>(p)](action);
  };
  std::vector<int> all(programs.size()), ends;
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t p = 0; p < programs.size(); ++p)
    if (std::ranges::any_of(programs[p].actions,
                            [](const Action& action) { return action.kind == Kind::kSyncTied; }))
      ends.push_back(static_cast<int>(p));
  options.members = [&](const Action& action, int) {
    const bool over_pipeline =
        action.kind == Kind::kGradNorm || action.attribute("axis") == "vocabulary";
    if (over_pipeline) return all;
    return action.kind == Kind::kSyncTied ? ends : std::vector<int>{};
  };
  return simulate(programs, options);
}

}  // namespace ptrain::plan
