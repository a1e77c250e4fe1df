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

void close_span(MicroBatch& batch) {
  const std::int64_t begin = batch.documents.empty() ? 0 : batch.documents.back().end;
  const auto end = static_cast<std::int64_t>(batch.tokens.size());
  if (end > begin) batch.documents.push_back({begin, end});
  const std::int64_t first = planted(Bug::kPositionsGoOn) ? begin : 0;
  for (std::int64_t i = 0; i < end - begin; ++i)
    batch.positions.push_back(static_cast<std::int32_t>(first + i));
}

std::int32_t token_of(const Index& index, std::uint32_t token) {
  if (token < index.vocabulary()) return static_cast<std::int32_t>(token);
  throw EngineError(ExitCode::kUnusable, "the token index is damaged: it holds an unknown token",
                    "remove the index in the cache folder; it is built again");
}

// Takes the targets that are not to be learned out of those of `range`, the last of the batch.
void silence(MicroBatch& batch, const Index& index, const packing::Range& range) {
  const std::int64_t first = std::ssize(batch.targets) - range.length();
  for (const TokenRange& silent : index.silent(range.document)) {
    const std::int64_t begin = std::max(silent.begin, range.begin + 1);
    const std::int64_t end = std::min(silent.end, range.end + 1);
    for (std::int64_t token = begin; token < end; ++token)
      batch.targets[static_cast<std::size_t>(first + token - range.begin - 1)] = kNoTarget;
  }
}

void append_range(MicroBatch& batch, const Index& index, const packing::Range& range) {
  const Tokens tokens = index.document(range.document);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    batch.tokens.push_back(token_of(index, tokens[i]));
    batch.targets.push_back(token_of(index, tokens[i + 1]));
  }
  if (planted(Bug::kFirstTargetDropped)) *(batch.targets.end() - range.length()) = kNoTarget;
  if (planted(Bug::kEndNotLearned)) std::ranges::replace(batch.targets, kByteEos, kNoTarget);
  silence(batch, index, range);
  close_span(batch);
}

void append_row(MicroBatch& batch, const Index& index, const packing::Row& row) {
  const std::size_t row_end = batch.tokens.size() + static_cast<std::size_t>(batch.sequence);
  for (const packing::Range& range : row) append_range(batch, index, range);
  batch.tokens.resize(row_end, static_cast<std::int32_t>(index.pad()));
  batch.targets.resize(row_end, kNoTarget);
  close_span(batch);
}

}  // namespace

struct Loader::Impl {
  Impl(std::shared_ptr<const Index> data, Options options)
      : index(data), sequence(options.sequence), stream(std::move(data), std::move(options)) {}
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
  // Else a long run would come to hold the whole text.
  impl_->index->release_pages();
  return step;
}

Position Loader::position() const { return impl_->stream.position(); }
void Loader::restore(const Position& position) { impl_->stream.restore(position); }
bool Loader::at_end() const { return impl_->stream.at_end(); }

}  // namespace ptrain::data
