#pragma once

#include <cstdint>
#include <vector>

#include "core/packing/strategy.h"
#include "engine/data/batch.h"

namespace ptrain::parity {

struct PackedRows {
  std::int64_t num_rows = 1;
  std::int64_t sequence = 1;
  std::int32_t vocabulary = 2;
  std::uint64_t seed = 0;
  packing::Strategy strategy = packing::Strategy::kBestFitDecreasing;
};

// Rows that the loader makes of random documents, from two tokens up to twice a row, most short.
std::vector<data::MicroBatch> packed_rows(const PackedRows& wanted);

}  // namespace ptrain::parity
