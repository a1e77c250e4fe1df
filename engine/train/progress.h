#pragma once

#include <cstdint>
#include <string>

#include "engine/data/loader.h"

namespace ptrain::train {

// Where training stands; with parameters and moments all that a checkpoint holds.
struct Progress {
  std::int64_t step = 0;          // finished, over all shapes
  std::int64_t tokens_total = 0;  // target tokens trained on
  data::Position position;
  std::string train_hash;       // of the token indices; empty before the first checkpoint
  std::string validation_hash;  // empty: no validation data
};

}  // namespace ptrain::train
