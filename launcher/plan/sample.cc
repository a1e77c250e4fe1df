#include "launcher/plan/sample.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ptrain::plan {

namespace {

using model::Architecture;
using model::LayerSpec;

bool alike(const LayerSpec& a, const LayerSpec& b) {
  return a.kind == b.kind && a.stash == b.stash && a.segments == b.segments &&
         a.parameters.size() == b.parameters.size();
}

// Layers of the whole, the first of each kind.
class Picks {
 public:
  explicit Picks(const Architecture& whole) : whole_(whole) {
    for (const LayerSpec& layer : whole.layers) add(layer);
  }

  Sample take() {
    Architecture& sample = out_.architecture;
    sample.dtype = whole_.dtype;
    sample.compute_dtype = whole_.compute_dtype;
    sample.config = whole_.config;
    sample.config.num_hidden_layers = std::ssize(picked_) - 2;
    take_decoder();
    take_groups();
    take_parameters();
    for (const int layer : picked_) take_layer(whole_.layers[static_cast<std::size_t>(layer)]);
    return std::move(out_);
  }

 private:
  static constexpr int kNone = -1;

  void add(const LayerSpec& layer) {
    const auto like = std::ranges::find_if(picked_, [&](int other) {
      return alike(whole_.layers[static_cast<std::size_t>(other)], layer);
    });
    out_.likes.push_back(static_cast<int>(like - picked_.begin()));
    if (like == picked_.end()) picked_.push_back(layer.index);
  }

  void take_decoder() {
    const model::Decoder& all = whole_.decoder;
    model::Decoder& decoder = out_.architecture.decoder = all;
    decoder.layers.clear();
    decoder.has_experts.clear();
    for (const int layer : picked_) {
      const auto block = static_cast<std::size_t>(layer) - 1;
      if (whole_.layers[block + 1].kind != model::LayerKind::kBlock) continue;
      if (block < all.layers.size()) decoder.layers.push_back(all.layers[block]);
      if (block < all.has_experts.size()) decoder.has_experts.push_back(all.has_experts[block]);
    }
  }

  // Those of experts lie behind those of all layers in the sample too.
  void take_groups() {
    group_of_.assign(whole_.groups.size(), kNone);
    for (std::size_t group = 0; group < whole_.groups.size(); ++group) {
      model::GroupSpec taken = whole_.groups[group];
      const auto place = std::ranges::find(picked_, taken.layer);
      if (place == picked_.end()) continue;
      taken.layer = static_cast<int>(place - picked_.begin());
      group_of_[group] = out_.architecture.num_groups();
      out_.architecture.groups.push_back(taken);
    }
  }

  void take_parameters() {
    place_of_.assign(whole_.parameters.size(), kNone);
    for (std::size_t i = 0; i < whole_.parameters.size(); ++i) {
      const int group = group_of_[static_cast<std::size_t>(whole_.parameters[i].group)];
      if (group == kNone) continue;
      place_of_[i] = static_cast<int>(out_.architecture.parameters.size());
      out_.architecture.parameters.push_back(whole_.parameters[i]);
      out_.architecture.parameters.back().group = group;
    }
  }

  void take_layer(const LayerSpec& layer) {
    LayerSpec taken = layer;
    taken.index = static_cast<int>(out_.architecture.layers.size());
    for (int& group : taken.groups) group = group_of_[static_cast<std::size_t>(group)];
    for (int& parameter : taken.parameters)
      parameter = place_of_[static_cast<std::size_t>(parameter)];
    out_.architecture.layers.push_back(std::move(taken));
  }

  const Architecture& whole_;
  std::vector<int> picked_;  // ascending
  std::vector<int> group_of_, place_of_;
  Sample out_;
};

}  // namespace

Sample sample_of(const Architecture& whole) { return Picks(whole).take(); }

}  // namespace ptrain::plan
