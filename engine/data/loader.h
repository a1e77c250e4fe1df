#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/recipe/recipe.h"
#include "engine/data/batch.h"
#include "engine/data/index.h"
#include "engine/data/position.h"

namespace ptrain::data {

// One shard of a global step: this rank's micro-batches.
struct StepRows {
  std::vector<MicroBatch> micro_batches;
};

// Packed rows in a global, seeded order: every rank walks the same stream and takes its own rows.
// EngineError (kUnusable) when the index has nothing to train on or is damaged. One thread.
class Loader {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t sequence = 0;
    recipe::Packing packing;
    bool repeat = true;                // false: one pass (validation), then rows are all padding
    std::vector<double> weights = {};  // of the index's sources; those beyond it: 1
  };
  Loader(std::shared_ptr<const Index> index, Options options);
  ~Loader();

  // Rows of one step: micro-batch i of data rank d holds rows [(i * num_data_ranks + d) *
  // rows_each, ...). Every rank must call it with the same counts: they say how far the stream goes
  // on.
  StepRows next(int data_rank, int num_data_ranks, std::int64_t num_micro_batches,
                std::int64_t rows_each);

  // restore(position()) gives the same rows again, on any number of ranks. On a loader of another
  // `sequence` what the position's window had not given out opens a new window, so that nothing is
  // lost or repeated. EngineError (kUnusable) for a position of another index or seed.
  Position position() const;
  void restore(const Position& position);

  // Whether the only pass is over (never with `repeat`).
  bool at_end() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptrain::data
