#pragma once

#include <cstdint>
#include <utility>

#include "core/model/architecture.h"
#include "engine/data/batch.h"

namespace ptrain::bench {

// What a bench trains, and for how long.
struct Shape {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocabulary, rows, sequence, steps;
  std::int64_t tied = 0;  // the head reads the embedding
};

// The members in their order from argv[first] on; those that are not given stay.
Shape shape_from(int argc, char** argv, int first, Shape shape);
// [bf16] and the members, beginning with a small model.
std::pair<Shape, DType> shape_and_dtype_from(int argc, char** argv);

// Of this process so far.
double cpu_seconds();

model::Architecture architecture_of(const Shape& shape, DType compute_dtype = DType::kFloat32);

// Random tokens, one document a row.
data::MicroBatch random_batch(const Shape& shape, std::int64_t rows, unsigned seed);

}  // namespace ptrain::bench
