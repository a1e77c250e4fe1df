#pragma once

#include <vector>

#include "engine/layers/layer.h"

namespace ptrain::layers {

// How the ranks of an axis share tokens: each holds the rows of its own; `whole` has the rows of
// all, rank by rank, in one piece of memory. A rank alone holds all: its own rows are the whole.
class AxisShare {
 public:
  AxisShare(model::AxisPlace place, ExchangeAxis axis) : place_(place), axis_(axis) {}

  bool alone() const { return place_.size == 1; }
  bool is_first() const { return place_.rank == 0; }
  std::int64_t own_rows(std::int64_t rows_of_whole) const;
  std::int64_t first_row(std::int64_t rows_of_whole) const {
    return place_.rank * own_rows(rows_of_whole);
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

  model::AxisPlace place_;
  ExchangeAxis axis_;
};

}  // namespace ptrain::layers
