#include "launcher/plan/cuts.h"

#include "core/mesh/divisible.h"
#include "core/mesh/part.h"
#include "launcher/plan/parts.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using model::Architecture;

Layout of_one_stage(const Layout& degrees) {
  Layout layout = degrees;
  layout.pp = layout.num_virtual = 1;
  layout.stage_layers.clear();
  layout.spread_embedding = layout.spread_head = false;
  layout.stage_recompute.clear();
  layout.layer_dtypes.clear();
  return layout;
}

// Thousands of cuts are kept, and those of experts are what is large in them.
void keep_head_alone(Architecture& part) {
  const int head = part.layers.back().parameters.back();
  part.parameters = {part.parameters[static_cast<std::size_t>(head)]};
  for (model::LayerSpec& layer : part.layers) layer.parameters.clear();
  part.layers.back().parameters = {0};
}

// What the map has under the key, made where it has none.
template <class Map, class Make>
auto& known(Map& map, const typename Map::key_type& key, Make make) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : map.emplace(key, make()).first->second;
}

}  // namespace

std::vector<int> Cuts::groups_of(int layer) const {
  const auto& all = sample_.architecture.groups;
  std::vector<int> groups;
  for (std::size_t group = 0; group < all.size(); ++group)
    if (all[group].layer == layer) groups.push_back(static_cast<int>(group));
  return groups;
}

Result<Architecture> Cuts::cut(const Layout& degrees) {
  const Layout layout = of_one_stage(degrees);
  num_cut_ += std::ssize(sample_.architecture.parameters);
  return mesh::part_of(sample_.architecture, layout, rank_at_place(layout, 0));
}

Result<const Architecture*> Cuts::work_of(const Layout& degrees) {
  // The only check that asks for all ranks.
  PTRAIN_CHECK(mesh::check_divisible(sample_.architecture, of_one_stage(degrees)));
  const auto make = [&] {
    auto part = cut(degrees);
    if (part) keep_head_alone(*part);
    return part;
  };
  const Key<5> key{degrees.tp, degrees.cp, degrees.ulysses, degrees.ep, degrees.etp};
  const auto& part = known(works_, key, make);
  if (!part) return tl::unexpected(part.error());
  return &*part;
}

Result<const Architecture*> Cuts::whole_of(const Layout& degrees) {
  const auto& part =
      known(wholes_, {degrees.tp, degrees.ep, degrees.etp}, [&] { return cut(degrees); });
  if (!part) return tl::unexpected(part.error());
  return &*part;
}

Result<const CutState*> Cuts::state_of(const Layout& degrees) {
  PTRAIN_TRY(const Architecture* part, whole_of(degrees));
  const Layout layout = of_one_stage(degrees);
  const auto make = [&] {
    num_cut_ += std::ssize(part->parameters);
    return CutState{*part, mesh::plan_buffers(*part, layout)};
  };
  return &known(
      states_,
      {layout.tp, layout.ep, layout.etp, layout.num_shards(), mesh::num_expert_shards(layout)},
      make);
}

}  // namespace ptrain::plan
