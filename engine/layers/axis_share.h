#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/layer.h"

namespace ptrain::layers {

// How the ranks of an axis share tokens: each holds the rows of its own; `whole` has the rows of
// all, rank by rank, in one piece of memory. A rank alone holds all: its own rows are the whole.
class AxisShare {
 public:
  // Ranks of an axis that hold equal parts of the tokens; the others hold none.
  struct Holders {
    int first = 0;
    int count = 1;
  };
  AxisShare(model::AxisPlace place, ExchangeAxis axis) : AxisShare(place, axis, {0, place.size}) {}
  AxisShare(model::AxisPlace place, ExchangeAxis axis, Holders holders)
      : place_(place), axis_(axis), holders_(holders) {}

  bool alone() const { return place_.size == 1; }
  bool holds(int rank) const {
    return rank >= holders_.first && rank < holders_.first + holders_.count;
  }
  bool has_rows() const { return holds(place_.rank); }
  std::int64_t own_rows(std::int64_t rows_of_whole) const {
    return rows_of(place_.rank, rows_of_whole);
  }
  std::int64_t first_row(std::int64_t rows_of_whole) const {
    return (place_.rank - holders_.first) * own_rows(rows_of_whole);
  }
  // The own rows of `whole`.
  Tensor own(const Tensor& whole) const;
  // A whole with `part` in its own rows, in new scratch; `part` itself where the rank is alone.
  Tensor whole_with(const Tensor& part, Arena& arena, std::vector<Buffer>& buffers) const;

  // For ranks that are not alone. Fills the rows of the others.
  Exchange gather(Tensor whole) const;
  // Of wholes that are added up, the own rows; the others are lost. In rank order.
  Exchange sum(Tensor whole) const;

 private:
  struct Parts {
    std::vector<std::int64_t> offsets, counts;  // in elements, one a rank
  };
  Parts parts_of(const Tensor& whole) const;
  std::int64_t rows_of(int rank, std::int64_t rows_of_whole) const;

  model::AxisPlace place_;
  ExchangeAxis axis_;
  Holders holders_;
};

}  // namespace ptrain::layers
