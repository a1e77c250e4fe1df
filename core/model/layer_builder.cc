#include "core/model/layer_builder.h"

#include <utility>

namespace ptrain::model {

ParameterSpec& LayerBuilder::parameter(Role role, std::string name, std::vector<std::int64_t> shape,
                                       Init init) {
  layer_.parameters.push_back(static_cast<int>(architecture_.parameters.size()));
  ParameterSpec& parameter = architecture_.parameters.emplace_back();
  parameter.name = std::move(name);
  parameter.shape = std::move(shape);
  parameter.group = group_;
  parameter.init = init;
  parameter.decays = parameter.shape.size() > 1;
  parameter.role = role;
  return parameter;
}

void LayerBuilder::matrix(Role role, const std::string& name, std::int64_t out, std::int64_t in,
                          Init init) {
  const bool transposed = decoder().linears_transposed;
  const std::vector<std::int64_t> shape = transposed ? std::vector{in, out} : std::vector{out, in};
  parameter(role, name + ".weight", shape, init).transposed = transposed;
}

void LayerBuilder::bias(Role role, const std::string& name, std::int64_t size) {
  parameter(role, name + ".bias", {size}, Init::kZeros);
}

void LayerBuilder::norm(Role role, Role bias_role, const std::string& name) {
  if (name.empty()) return;
  scale(role, name, hidden());
  if (decoder().norm == NormKind::kLayerNorm) bias(bias_role, name, hidden());
}

void LayerBuilder::scale(Role role, const std::string& name, std::int64_t size) {
  const bool plus_one = decoder().norm == NormKind::kRmsPlusOne;
  parameter(role, name + ".weight", {size}, plus_one ? Init::kZeros : Init::kOnes);
}

StashTensor& LayerBuilder::stash(std::string name, std::int64_t elements, StashClass stash_class) {
  return layer_.stash.emplace_back(
      StashTensor{std::move(name), elements, architecture_.dtype, stash_class});
}

StashTensor& LayerBuilder::multiplied(std::string name, std::int64_t elements,
                                      StashClass stash_class) {
  StashTensor& tensor = stash(std::move(name), elements, stash_class);
  tensor.dtype = layer_.compute_dtype;
  tensor.for_weights = ForWeights::kItself;
  return tensor;
}

StashTensor& LayerBuilder::stash_of_stream(std::string name, std::int64_t elements,
                                           StashClass stash_class) {
  StashTensor& tensor = stash(std::move(name), elements, stash_class);
  tensor.rows = StashRows::kStream;
  return tensor;
}

StashTensor& LayerBuilder::multiplied_of_stream(std::string name, std::int64_t elements,
                                                StashClass stash_class) {
  StashTensor& tensor = multiplied(std::move(name), elements, stash_class);
  tensor.rows = StashRows::kStream;
  return tensor;
}

StashTensor& LayerBuilder::multiplied_of_experts(std::string name, std::int64_t elements,
                                                 StashClass stash_class) {
  StashTensor& tensor = multiplied(std::move(name), elements, stash_class);
  tensor.rows = StashRows::kExperts;
  return tensor;
}

void LayerBuilder::matmul(std::string name, std::int64_t in, std::int64_t out) {
  segment({std::move(name), 2.0 * static_cast<double>(in) * static_cast<double>(out), 0});
}

}  // namespace ptrain::model
