#include "engine/data/loader.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"
#include "engine/data/row_stream.h"

namespace ptrain::data {
namespace {

MicroBatch empty_batch(std::int64_t rows, std::int64_t sequence) {
  MicroBatch batch;
  batch.rows = rows;
  batch.sequence = sequence;
  const auto num_tokens = static_cast<std::size_t>(rows * sequence);
  batch.tokens.reserve(num_tokens);
  batch.targets.reserve(num_tokens);
  batch.positions.reserve(num_tokens);
  return batch;
}

void check_tokens(std::span<const std::uint16_t> tokens) {
  if (std::ranges::max(tokens) > kByteEos)
    throw EngineError(ExitCode::kUnusable, "the token index is damaged: it holds an unknown token",
                      "remove the index in the cache folder; it is built again");
}

void close_span(MicroBatch& batch) {
  const std::int64_t begin = batch.documents.empty() ? 0 : batch.documents.back().end;
  const auto end = static_cast<std::int64_t>(batch.tokens.size());
  if (end > begin) batch.documents.push_back({begin, end});
  const std::int64_t first = planted(Bug::kPositionsGoOn) ? begin : 0;
  for (std::int64_t i = 0; i < end - begin; ++i)
    batch.positions.push_back(static_cast<std::int32_t>(first + i));
}

void append_range(MicroBatch& batch, const Index& index, const packing::Range& range) {
  const auto tokens = index.document(range.document)
                          .subspan(static_cast<std::size_t>(range.begin),
                                   static_cast<std::size_t>(range.length() + 1));
  check_tokens(tokens);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end() - 1);
  batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
  close_span(batch);
}

void append_row(MicroBatch& batch, const Index& index, const packing::Row& row) {
  const std::size_t row_end = batch.tokens.size() + static_cast<std::size_t>(batch.sequence);
  for (const packing::Range& range : row) append_range(batch, index, range);
  batch.tokens.resize(row_end, kBytePad);
  batch.targets.resize(row_end, kNoTarget);
  close_span(batch);
}

}  // namespace

struct Loader::Impl {
  Impl(std::shared_ptr<const Index> data, Options options)
      : index(data), sequence(options.sequence), stream(std::move(data), options) {}
  std::shared_ptr<const Index> index;
  std::int64_t sequence;
  RowStream stream;
};

Loader::Loader(std::shared_ptr<const Index> index, Options options)
    : impl_(std::make_unique<Impl>(std::move(index), options)) {}
Loader::~Loader() = default;

StepRows Loader::next(int data_rank, int num_data_ranks, std::int64_t num_micro_batches,
                      std::int64_t rows_each) {
  PT_CHECK(data_rank >= 0 && data_rank < num_data_ranks && rows_each >= 1);
  StepRows step;
  for (std::int64_t i = 0; i < num_micro_batches; ++i)
    for (int rank = 0; rank < num_data_ranks; ++rank) {
      const bool ours = rank == data_rank;
      if (ours) step.micro_batches.push_back(empty_batch(rows_each, impl_->sequence));
      for (std::int64_t r = 0; r < rows_each; ++r) {
        const packing::Row row = impl_->stream.take();
        if (ours) append_row(step.micro_batches.back(), *impl_->index, row);
      }
    }
  return step;
}

Position Loader::position() const { return impl_->stream.position(); }
void Loader::restore(const Position& position) { impl_->stream.restore(position); }
bool Loader::at_end() const { return impl_->stream.at_end(); }

}  // namespace ptrain::data
