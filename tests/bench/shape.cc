#include "tests/bench/shape.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <string_view>

#include "engine/base/engine_error.h"

namespace ptrain::bench {

Shape shape_from(int argc, char** argv, int first, Shape shape) {
  for (std::int64_t* member :
       {&shape.layers, &shape.hidden, &shape.heads, &shape.kv_heads, &shape.ffn, &shape.vocabulary,
        &shape.rows, &shape.sequence, &shape.steps, &shape.tied})
    if (first < argc) *member = std::atoll(argv[first++]);
  return shape;
}

int run_on(int argc, char** argv, void (*run)(const Shape& shape, DType compute_dtype)) {
  const bool rounds = argc > 1 && argv[1] == std::string_view("bf16");
  try {
    run(shape_from(argc, argv, rounds ? 2 : 1, {4, 256, 8, 4, 768, 256, 16, 128, 8}),
        rounds ? DType::kBFloat16 : DType::kFloat32);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

model::Architecture architecture_of(const Shape& shape, DType compute_dtype) {
  recipe::Model config;
  config.num_hidden_layers = shape.layers;
  config.hidden_size = shape.hidden;
  config.num_attention_heads = shape.heads;
  config.num_key_value_heads = shape.kv_heads;
  config.intermediate_size = shape.ffn;
  config.vocab_size = shape.vocabulary;
  config.tie_word_embeddings = shape.tied != 0;
  return value_or_throw(model::make_architecture(config, compute_dtype));
}

data::MicroBatch random_batch(const Shape& shape, std::int64_t rows, unsigned seed) {
  data::MicroBatch batch = data::rows_of_one_document(rows, shape.sequence);
  std::mt19937 generator(seed);
  std::uniform_int_distribution token(0, static_cast<std::int32_t>(shape.vocabulary - 1));
  for (std::int64_t i = 0; i < batch.num_tokens(); ++i) {
    batch.tokens.push_back(token(generator));
    batch.targets.push_back(token(generator));
  }
  return batch;
}

}  // namespace ptrain::bench
