#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/model/architecture.h"
#include "engine/base/arena.h"
#include "engine/layers/layer.h"
#include "engine/state/group_buffer.h"

namespace ptrain::execute {

// Where the gradients of a rank's parameters go.
class GradientTargets {
 public:
  GradientTargets(const model::Architecture& architecture, std::vector<state::GroupBuffer>& groups)
      : architecture_(architecture), groups_(groups) {}

  // In LayerSpec::parameters order; those that hold a sum already are added to.
  std::vector<layers::GradientTarget> of(const model::LayerSpec& spec) const;
  // From here on they hold a sum.
  void written(const model::LayerSpec& spec);
  void written(int parameter) { group_of(parameter).mark_gradient(parameter); }
  layers::GradientTarget target(int parameter) const;

 private:
  state::GroupBuffer& group_of(int parameter) const;

  const model::Architecture& architecture_;
  std::vector<state::GroupBuffer>& groups_;
};

// Whether any of them reads a part of `tensor`.
bool reads(std::span<const layers::WeightProduct> products, const Tensor& tensor);

// What BACKWARD_INPUT leaves for BACKWARD_WEIGHT, by (layer, micro-batch). Whole gradients may have
// been given back and taken anew between the two, so each product remembers its parameters.
class QueuedProducts {
 public:
  // All of the layer's gradients that no product makes are written already. The scratch counts as
  // stash from here on.
  void put(const model::LayerSpec& spec, int micro_batch,
           std::span<const layers::GradientTarget> targets,
           std::vector<layers::WeightProduct> products, std::vector<Buffer> scratch,
           GradientTargets& gradients);
  void multiply(int layer, int micro_batch, GradientTargets& gradients);
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::vector<layers::WeightProduct> products;
    std::vector<std::vector<int>> parameters;  // of each product, in the order of its rows
    std::vector<Buffer> scratch;
  };
  std::map<std::pair<int, int>, Entry> entries_;
};

}  // namespace ptrain::execute
