#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/expert_rows.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

// How ranks share the experts of a layer: each holds some (ep), or columns of some (etp). A rank
// sends the rows of its tokens to those that hold the experts, and gets back what these make of
// them; where etp ranks have columns of one expert, each gets the rows and gives a part of every
// sum. Of an expert's rows those of the first rank come first.
class ExpertShare {
 public:
  explicit ExpertShare(const model::Architecture& architecture)
      : place_(architecture.experts), num_held_(architecture.num_held_experts()) {}

  bool alone() const { return place_.size() == 1; }
  std::int64_t num_counts() const { return place_.size() * num_held_; }
  // Parts that the results of a row come in.
  int num_parts() const { return place_.etp; }

  // For ranks that are not alone. How many rows each expert gets, of all.
  using Counts = std::vector<std::int32_t>;
  static Counts count(const kernels::ExpertRows& own);
  // Fills arrived [1, num_counts]: by rank, how many of its rows come for each expert held here.
  Exchange tell(Counts& counts, const Tensor& arrived) const;
  // The rows that come.
  kernels::ExpertRuns runs(const Tensor& arrived) const;

  // The same rows at home and at the experts.
  struct Pair {
    Tensor own, arrived;
  };
  Exchange dispatch(const kernels::ExpertRows& own, const Tensor& arrived,
                    const std::vector<Pair>& pairs) const;
  // Back: `own` has num_parts() blocks of its rows.
  Exchange combine(const kernels::ExpertRows& own, const Tensor& arrived,
                   const std::vector<Pair>& pairs) const;
  // Block `part` of what came back.
  Tensor part_of(const Tensor& own, int part) const {
    const std::int64_t rows = own.rows / num_parts();
    return own.row_range(part * rows, rows);
  }

 private:
  struct Pieces {
    std::vector<comm::Piece> own, arrived;
  };
  // `blocks`: of the own rows, each for one of the etp ranks, or one for all.
  Pieces pieces(const kernels::ExpertRows& own, const Tensor& arrived,
                const std::vector<Pair>& pairs, int blocks) const;

  model::ExpertPlace place_;
  std::int64_t num_held_;
};

}  // namespace ptrain::layers
