#include "engine/execute/queued_products.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::execute {
namespace {

// Whether a part of what `whole` covers begins at `part`.
bool covers(const Tensor& whole, const Tensor& part) {
  const auto* begin = static_cast<const std::byte*>(whole.data);
  const auto* at = static_cast<const std::byte*>(part.data);
  return at >= begin && at < begin + whole.rows * whole.stride * size_of(whole.dtype);
}

}  // namespace

state::GroupBuffer& GradientTargets::group_of(int parameter) const {
  const int group = architecture_.parameters[static_cast<std::size_t>(parameter)].group;
  return groups_[static_cast<std::size_t>(group)];
}

layers::GradientTarget GradientTargets::target(int parameter) const {
  state::GroupBuffer& group = group_of(parameter);
  return {group.gradient(parameter), group.has_gradient(parameter)};
}

std::vector<layers::GradientTarget> GradientTargets::of(const model::LayerSpec& spec) const {
  std::vector<layers::GradientTarget> targets;
  for (const int parameter : spec.parameters) targets.push_back(target(parameter));
  return targets;
}

void GradientTargets::written(const model::LayerSpec& spec) {
  for (const int parameter : spec.parameters) written(parameter);
}

bool reads(std::span<const layers::WeightProduct> products, const Tensor& tensor) {
  return std::ranges::any_of(products, [&](const layers::WeightProduct& product) {
    return covers(tensor, product.x) || covers(tensor, product.dy);
  });
}

void QueuedProducts::put(const model::LayerSpec& spec, int micro_batch,
                         std::span<const layers::GradientTarget> targets,
                         std::vector<layers::WeightProduct> products, std::vector<Buffer> scratch,
                         GradientTargets& gradients) {
  for (Buffer& buffer : scratch) buffer.count_as(program::MemoryClass::kStash);
  Entry entry{std::move(products), {}, std::move(scratch)};
  entry.parameters.resize(entry.products.size());
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    bool is_queued = false;
    for (std::size_t p = 0; p < entry.products.size(); ++p) {
      if (!covers(entry.products[p].target.tensor, targets[i].tensor)) continue;
      entry.parameters[p].push_back(spec.parameters[i]);
      is_queued = true;
    }
    if (!is_queued) gradients.written(spec.parameters[i]);
  }
  const auto [place, is_new] = entries_.try_emplace({spec.index, micro_batch}, std::move(entry));
  PT_CHECK(is_new);
}

void QueuedProducts::multiply(int layer, int micro_batch, GradientTargets& gradients) {
  const auto found = entries_.find({layer, micro_batch});
  PT_CHECK(found != entries_.end());
  Entry& entry = found->second;
  for (std::size_t p = 0; p < entry.products.size(); ++p) {
    const auto& parameters = entry.parameters[p];
    PT_CHECK(!parameters.empty());
    const layers::GradientTarget now = gradients.target(parameters.front());
    entry.products[p].target.tensor.data = now.tensor.data;
    entry.products[p].target.accumulate = now.accumulate && !planted(Bug::kQueuedOverwritten);
    for (const int parameter : parameters) gradients.written(parameter);
  }
  layers::backward_weight(entry.products);
  entries_.erase(found);
}

}  // namespace ptrain::execute
