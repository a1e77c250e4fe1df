#pragma once

#include <vector>

#include "core/model/exchanges.h"

namespace ptrain::model {

// What a feed-forward of experts needs of other ranks, in the order of the engine's MoePart; none
// where each rank holds whole rows and all experts. Ranks that share rows show each other what
// their routers chose, since losses and room are those of whole rows. Shared experts are split over
// the tensor axis as an MLP is. Ranks that share experts first tell each other how many rows come,
// then rows go to the experts, and what these make of them comes back; in backward, which gives the
// experts their inputs again, gradients do.
std::vector<ExchangeSpec> expert_exchanges(const Architecture& architecture, const LayerSpec& layer,
                                           Call call);

}  // namespace ptrain::model
