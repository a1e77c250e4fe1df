#include "core/recipe/source_weights.h"

namespace ptrain::recipe {

std::vector<double> source_weights(const Data& data) {
  std::vector<double> weights;
  for (const DataSource& source : data.train) weights.push_back(source.weight);
  return weights;
}

}  // namespace ptrain::recipe
