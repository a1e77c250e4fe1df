#pragma once

#include <vector>

#include "core/recipe/data.h"

namespace ptrain::recipe {

// The weight of each entry of data.train, in their order.
std::vector<double> source_weights(const Data& data);

}  // namespace ptrain::recipe
