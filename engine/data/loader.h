#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/recipe/recipe.h"
#include "engine/data/batch.h"
#include "engine/data/index.h"

namespace ptrain::data {

// Where the row stream stands. Independent of the number of ranks; part of every checkpoint.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t window = 0;            // within the epoch
  std::int64_t row = 0;               // rows of the window already given out
  std::int64_t first_document = 0;    // of the window, in the epoch's order
  std::vector<std::int64_t> carried;  // documents (or their rest) that open the next window
  std::int64_t documents_total = 0;   // begun since the start of the run
  std::int64_t tokens_total = 0;      // targets given out since the start of the run
  bool operator==(const Position&) const = default;
};
std::string to_json_text(const Position& position);
Position position_from_json_text(const std::string& text);  // EngineError when it cannot be read

// One shard of a global step: this rank's micro-batches.
struct StepRows {
  std::vector<MicroBatch> micro_batches;
};

// Packed rows in a global, seeded order: every rank walks the same stream and takes its own rows.
class Loader {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t sequence = 0;
    recipe::Packing packing;
    bool repeat = true;  // false: one pass (validation), rows past the end are all padding
  };
  Loader(std::shared_ptr<const Index> index, Options options);
  ~Loader();

  // Rows of one step: micro-batch i of data rank d holds rows [(i * num_data_ranks + d) *
  // rows_each, ...).
  StepRows next(int data_rank, int num_data_ranks, std::int64_t num_micro_batches,
                std::int64_t rows_each);

  // At a change of shape, restore(position()) of the old loader on the new one: the documents of
  // the window that were not yet begun open the new shape's first window.
  Position position() const;
  void restore(const Position& position);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptrain::data
