#pragma once

#include <cstdint>

#include "core/model/architecture.h"
#include "engine/data/batch.h"

namespace ptrain::bench {

// What a bench trains, and for how long.
struct Shape {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocabulary, rows, sequence, steps;
};

// The members in their order from argv[first] on; those that are not given stay.
Shape shape_from(int argc, char** argv, int first, Shape shape);

model::Architecture architecture_of(const Shape& shape, DType compute_dtype = DType::kFloat32);

// Random tokens, one document a row.
data::MicroBatch random_batch(const Shape& shape, std::int64_t rows, unsigned seed);

}  // namespace ptrain::bench
