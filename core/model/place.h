#pragma once

#include <cstdint>

namespace ptrain::model {

// The ranks of one axis that work together, and the own one among them.
struct AxisPlace {
  int size = 1;
  int rank = 0;
  bool operator==(const AxisPlace&) const = default;
};

// The ranks that share the experts of a layer, etp fastest: etp neighbours have columns of the same
// ones.
struct ExpertPlace {
  int ep = 1, etp = 1;
  int rank = 0;
  int size() const { return ep * etp; }
  bool operator==(const ExpertPlace&) const = default;
};

// The ranks that share the embedding's or the head's matrix, each with its rows for a part of the
// vocabulary: those of the tensor axis or, where it is spread, of the whole pipeline, tensor ranks
// as neighbours. `num_holders` of them from `first_holder` on have the stream that the embedding
// gives or the head reads.
struct VocabularyPlace {
  int size = 1;
  int rank = 0;
  int first_holder = 0;
  int num_holders = 1;
  bool is_spread() const { return size > num_holders; }
  bool has_stream() const { return rank >= first_holder && rank < first_holder + num_holders; }
  // Of `rows` of the whole matrix, where those of a rank begin; of the number of ranks: the end.
  // Neighbours on the tensor axis, of which num_holders divides `rows`, have equally many.
  std::int64_t first_row(std::int64_t rows, int of_rank) const;
  bool operator==(const VocabularyPlace&) const = default;
};

}  // namespace ptrain::model
