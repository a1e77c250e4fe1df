// A reader stopped after any row goes on with the very next one, on any number of ranks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/data/loader.h"
#include "tests/support/memory_index.h"

namespace ptrain::data {
namespace {

// Token t of document d is d * 64 + t, so that each row tells what it is made of.
std::shared_ptr<const Index> any_index() {
  const auto lengths =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 64)));
  MemoryIndex::Documents documents{{0, 1}};  // at least one target
  for (const int length : lengths) {
    documents.emplace_back();
    for (int t = 0; t < length; ++t)
      documents.back().push_back(
          static_cast<std::uint16_t>((static_cast<int>(documents.size()) - 1) * 64 + t));
  }
  class WideIndex final : public Index {
   public:
    explicit WideIndex(MemoryIndex::Documents documents) : inner_(std::move(documents)) {}
    std::int64_t num_documents() const override { return inner_.num_documents(); }
    Tokens document(std::int64_t i) const override { return inner_.document(i); }
    std::vector<TokenRange> silent(std::int64_t i) const override { return inner_.silent(i); }
    std::uint32_t vocabulary() const override { return 1 << 16; }
    std::uint32_t pad() const override { return (1 << 16) - 1; }
    std::vector<std::int64_t> sources() const override { return inner_.sources(); }
    const std::string& content_hash() const override { return inner_.content_hash(); }

   private:
    MemoryIndex inner_;
  };
  return std::make_shared<WideIndex>(std::move(documents));
}

Loader::Options any_options() {
  Loader::Options options;
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.sequence = *rc::gen::inRange<std::int64_t>(1, 40);
  options.packing.window = *rc::gen::inRange<std::int64_t>(1, 12);
  options.packing.strategy =
      *rc::gen::element(packing::Strategy::kNextFit, packing::Strategy::kFirstFit,
                        packing::Strategy::kBestFitDecreasing);
  return options;
}

struct Rows {
  std::vector<MicroBatch> rows;
  std::vector<std::string> before;  // the saved position before each row
};

Rows rows_of_one_rank(const std::shared_ptr<const Index>& index, const Loader::Options& options,
                      int count) {
  Loader alone(index, options);
  Rows result;
  for (int i = 0; i < count; ++i) {
    result.before.push_back(to_json_text(alone.position()));
    result.rows.push_back(alone.next(0, 1, 1, 1).micro_batches.at(0));
  }
  return result;
}

RC_GTEST_PROP(Resume, AfterEveryRowOnAnyRanks, ()) {
  constexpr int kRows = 60, kMicroBatches = 2, kMostRanks = 4;
  const auto index = any_index();
  const auto options = any_options();
  const Rows wanted = rows_of_one_rank(index, options, kRows);
  const int other = *rc::gen::inRange(0, kMostRanks);
  for (std::size_t stop = 0; stop + kMicroBatches * kMostRanks < kRows; ++stop) {
    const int ranks = 1 + (static_cast<int>(stop) + other) % kMostRanks;
    for (int rank = 0; rank < ranks; ++rank) {
      Loader loader(index, options);
      loader.restore(position_from_json_text(wanted.before[stop]));
      const StepRows step = loader.next(rank, ranks, kMicroBatches, 1);
      for (int i = 0; i < kMicroBatches; ++i)
        RC_ASSERT(step.micro_batches.at(static_cast<std::size_t>(i)) ==
                  wanted.rows.at(stop + static_cast<std::size_t>(i * ranks + rank)));
      RC_ASSERT(to_json_text(loader.position()) ==
                wanted.before.at(stop + static_cast<std::size_t>(kMicroBatches * ranks)));
    }
  }
}

}  // namespace
}  // namespace ptrain::data
