#pragma once

#include <cstdint>

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
// The main function of a bench: calls `run` with the shape and dtype of its arguments, [bf16] and
// the members, beginning with a small model. Prints what it throws; 1 then.
int run_on(int argc, char** argv, void (*run)(const Shape& shape, DType compute_dtype));

// Of this process so far.
double cpu_seconds();

model::Architecture architecture_of(const Shape& shape, DType compute_dtype = DType::kFloat32);

// Random tokens, one document a row.
data::MicroBatch random_batch(const Shape& shape, std::int64_t rows, unsigned seed);

}  // namespace ptrain::bench
