#include "engine/layers/expert_share.h"

#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::layers {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

comm::Piece piece_of(int peer, const Tensor& rows) {
  PT_CHECK(rows.stride == rows.cols);
  return {peer, {rows.as<std::byte>(), at(rows.num_elements() * size_of(rows.dtype))}};
}

Exchange all_to_all(std::vector<comm::Piece> sends, std::vector<comm::Piece> receives) {
  std::int64_t bytes = 0;
  for (const comm::Piece& piece : sends) bytes += std::ssize(piece.bytes);
  const auto start = [sends = std::move(sends), receives = std::move(receives)](
                         comm::Communicator& ranks) { return ranks.all_to_all_v(sends, receives); };
  return {ExchangeKind::kAllToAll, ExchangeAxis::kExperts, start, bytes};
}

}  // namespace

ExpertShare::Counts ExpertShare::count(const kernels::ExpertRows& own) {
  Counts counts;
  for (std::int64_t e = 0; e < own.num_experts(); ++e)
    counts.push_back(static_cast<std::int32_t>(own.of_expert(e)));
  return counts;
}

Exchange ExpertShare::tell(Counts& counts, const Tensor& arrived) const {
  PT_CHECK(std::ssize(counts) == place_.ep * num_held_ && arrived.cols == num_counts());
  const Tensor of_all = contiguous(counts.data(), DType::kInt32, place_.ep, num_held_);
  const Tensor of_ranks = contiguous(arrived.data, DType::kInt32, place_.size(), num_held_);
  std::vector<comm::Piece> sends, receives;
  for (int rank = 0; rank < place_.size(); ++rank) {
    sends.push_back(piece_of(rank, of_all.row_range(rank / place_.etp, 1)));
    receives.push_back(piece_of(rank, of_ranks.row_range(rank, 1)));
  }
  return all_to_all(std::move(sends), std::move(receives));
}

kernels::ExpertRuns ExpertShare::runs(const Tensor& arrived) const {
  kernels::ExpertRuns runs;
  runs.begin.assign(1, 0);
  for (std::int64_t e = 0; e < num_held_; ++e) {
    std::int64_t rows = 0;
    for (int rank = 0; rank < place_.size(); ++rank)
      rows += arrived.as<std::int32_t>()[rank * num_held_ + e];
    runs.begin.push_back(runs.begin.back() + rows);
  }
  return runs;
}

// Of a pair of ranks both sides go through the experts of the one that holds them, in order.
ExpertShare::Pieces ExpertShare::pieces(const kernels::ExpertRows& own, const Tensor& arrived,
                                        const std::vector<Pair>& pairs, int blocks) const {
  const auto add = [](std::vector<comm::Piece>& all, int rank, const Tensor& rows) {
    if (rows.rows > 0) all.push_back(piece_of(rank, rows));
  };
  const kernels::ExpertRuns held = runs(arrived);
  Pieces pieces;
  for (const Pair& pair : pairs) {
    PT_CHECK(pair.own.rows == blocks * own.num_rows() && pair.arrived.rows == held.num_rows());
    std::vector<std::int64_t> next = held.begin;
    for (int rank = 0; rank < place_.size(); ++rank) {
      const Tensor block =
          pair.own.row_range(rank % place_.etp % blocks * own.num_rows(), own.num_rows());
      for (std::int64_t e = 0; e < num_held_; ++e) {
        const std::int64_t count = arrived.as<std::int32_t>()[rank * num_held_ + e];
        add(pieces.own, rank, own.rows_of(block, rank / place_.etp * num_held_ + e));
        std::int64_t& first = next[planted(Bug::kExpertRowsByRank) ? 0 : at(e)];
        add(pieces.arrived, rank, pair.arrived.row_range(first, count));
        first += count;
      }
    }
  }
  return pieces;
}

Exchange ExpertShare::dispatch(const kernels::ExpertRows& own, const Tensor& arrived,
                               const std::vector<Pair>& pairs) const {
  Pieces all = pieces(own, arrived, pairs, 1);
  return all_to_all(std::move(all.own), std::move(all.arrived));
}

Exchange ExpertShare::combine(const kernels::ExpertRows& own, const Tensor& arrived,
                              const std::vector<Pair>& pairs) const {
  Pieces all = pieces(own, arrived, pairs, num_parts());
  return all_to_all(std::move(all.arrived), std::move(all.own));
}

}  // namespace ptrain::layers
