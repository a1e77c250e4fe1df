#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/packing/random.h"
#include "engine/base/engine_error.h"
#include "engine/data/loader.h"
#include "tests/support/memory_index.h"

namespace ptrain::data {
namespace {

// Token t of document d is the low byte of d * 31 + t, the last one EOS.
std::shared_ptr<const Index> index_of_lengths(const std::vector<int>& lengths) {
  MemoryIndex::Documents documents;
  for (const int length : lengths) {
    std::vector<std::uint16_t> tokens;
    for (int t = 0; t + 1 < length; ++t)
      tokens.push_back(static_cast<std::uint16_t>((documents.size() * 31 + tokens.size()) % 256));
    tokens.push_back(kByteEos);
    documents.push_back(std::move(tokens));
  }
  return memory_index(std::move(documents));
}

Loader::Options options(std::int64_t sequence, std::int64_t window = 4096, bool repeat = true) {
  Loader::Options result;
  result.seed = 7;
  result.sequence = sequence;
  result.packing.window = window;
  result.repeat = repeat;
  return result;
}

using Tokens = std::vector<std::int32_t>;

// Documents "ab", "c", "defgh" in rows of 4: "defgh" + EOS has 5 inputs, cut into 4 and 1. Best
// fit, longest first: [defg] [ab + c + h]; the pieces of 2, 1 and 1 fill the second row exactly.
TEST(Loader, HandCalculation) {
  const auto index =
      memory_index({{'a', 'b', kByteEos}, {'c', kByteEos}, {'d', 'e', 'f', 'g', 'h', kByteEos}});
  Loader loader(index, options(4, 4096, false));
  const MicroBatch batch = loader.next(0, 1, 1, 3).micro_batches.at(0);
  ASSERT_EQ(batch.tokens.size(), 12u);
  EXPECT_EQ(batch.num_targets(), 8);

  const auto at_row = [](const Tokens& values, std::int64_t row) {
    return Tokens(values.begin() + row * 4, values.begin() + (row + 1) * 4);
  };
  const std::int64_t full = at_row(batch.tokens, 0)[0] == 'd' ? 0 : 1;
  EXPECT_EQ(at_row(batch.tokens, full), (Tokens{'d', 'e', 'f', 'g'}));
  EXPECT_EQ(at_row(batch.targets, full), (Tokens{'e', 'f', 'g', 'h'}));
  EXPECT_EQ(at_row(batch.positions, full), (Tokens{0, 1, 2, 3}));

  const std::int64_t mixed = 1 - full;
  const Tokens tokens = at_row(batch.tokens, mixed);
  EXPECT_EQ(at_row(batch.positions, mixed), (Tokens{0, 1, 0, 0}));
  EXPECT_EQ(Tokens(tokens.begin(), tokens.begin() + 2), (Tokens{'a', 'b'}));
  EXPECT_EQ((std::set(tokens.begin() + 2, tokens.end())), (std::set<std::int32_t>{'c', 'h'}));
  const Tokens targets = at_row(batch.targets, mixed);
  EXPECT_EQ(targets, (Tokens{'b', kByteEos, kByteEos, kByteEos}));

  EXPECT_EQ(at_row(batch.tokens, 2), Tokens(4, kBytePad));
  EXPECT_EQ(at_row(batch.targets, 2), Tokens(4, kNoTarget));
  std::vector<DocumentSpan> spans{{full * 4, full * 4 + 4}};
  const std::int64_t begin = mixed * 4;
  const std::vector<DocumentSpan> small{
      {begin, begin + 2}, {begin + 2, begin + 3}, {begin + 3, begin + 4}};
  spans.insert(full == 0 ? spans.end() : spans.begin(), small.begin(), small.end());
  spans.push_back({8, 12});
  EXPECT_EQ(batch.documents, spans);
  EXPECT_TRUE(loader.at_end());
  EXPECT_EQ(loader.position().documents_total, 3);
  EXPECT_EQ(loader.position().tokens_total, 8);
}

TEST(Loader, PadsOnlyTheEndOfARow) {
  Loader loader(index_of_lengths({3}), options(5, 8, false));
  const MicroBatch batch = loader.next(0, 1, 1, 1).micro_batches.at(0);
  EXPECT_EQ(batch.tokens, (Tokens{0, 1, kBytePad, kBytePad, kBytePad}));
  EXPECT_EQ(batch.targets, (Tokens{1, kByteEos, kNoTarget, kNoTarget, kNoTarget}));
  EXPECT_EQ(batch.positions, (Tokens{0, 1, 0, 1, 2}));
  EXPECT_EQ(batch.documents, (std::vector<DocumentSpan>{{0, 2}, {2, 5}}));
}

TEST(Loader, RefusesWhatHasNoTargets) {
  EXPECT_THROW(Loader(index_of_lengths({}), options(4)), EngineError);
  try {
    Loader(index_of_lengths({1, 1}), options(4));
    ADD_FAILURE() << "not refused";
  } catch (const EngineError& error) {  // as of questions that nobody answers
    EXPECT_NE(error.error().hint.find("data.loss_on"), std::string::npos);
  }
  Loader loader(memory_index({{65, 999, kByteEos}}), options(4));
  EXPECT_THROW(loader.next(0, 1, 1, 1), EngineError);
}

TEST(Loader, RefusesAForeignPosition) {
  const auto index = index_of_lengths({9, 8, 7});
  Loader loader(index, options(4, 2));
  const Position good = loader.position();
  const auto refused = [&](auto change) {
    Position bad = good;
    change(bad);
    EXPECT_THROW(loader.restore(bad), EngineError);
  };
  refused([](Position& p) { p.index_hash = "other"; });
  refused([](Position& p) { p.seed = 8; });
  refused([](Position& p) { p.row = 1000; });
  refused([](Position& p) { p.first_document = 4; });
  refused([](Position& p) { p.num_documents = 4; });
  refused([](Position& p) { p.packer.sequence = 0; });
  refused([](Position& p) { p.carried = {{0, 0, 9}}; });
  refused([](Position& p) { p.carried = {{3, 0, 1}}; });
  refused([](Position& p) { p.carried = {{0, 2, 2}}; });
}

TEST(Position, TextIsExact) {
  Position position{3,
                    2,
                    1,
                    {packing::Strategy::kFirstFit, 128},
                    40,
                    12,
                    {{5, 0, 7}, {6, 8, 90}},
                    77,
                    1234567,
                    ~0ull,
                    "abc"};
  EXPECT_EQ(position_from_json_text(to_json_text(position)), position);
  for (const char* text : {"", "[]", "{}", R"({"version":1})", R"({"version":2})", "{\"version\":"})
    EXPECT_THROW(position_from_json_text(text), EngineError) << text;
  std::string text = to_json_text(position);
  text.replace(text.find("\"epoch\":3"), 9, "\"epoch\":-3");
  EXPECT_THROW(position_from_json_text(text), EngineError);
}

// --- properties over random texts and shapes ---

struct Case {
  std::vector<int> lengths;
  std::int64_t sequence, window;
  packing::Strategy strategy = packing::Strategy::kBestFitDecreasing;
};

packing::Strategy any_strategy() {
  return *rc::gen::element(packing::Strategy::kNextFit, packing::Strategy::kFirstFit,
                           packing::Strategy::kBestFitDecreasing);
}

Loader::Options options(const Case& c, bool repeat = true) {
  Loader::Options result = options(c.sequence, c.window, repeat);
  result.packing.strategy = c.strategy;
  return result;
}

Case any_case() {
  Case c;
  c.lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 40)));
  c.lengths.push_back(2);  // at least one target
  c.sequence = *rc::gen::inRange<std::int64_t>(1, 20);
  c.window = *rc::gen::inRange<std::int64_t>(1, 12);
  c.strategy = any_strategy();
  return c;
}

// A row as text that can be compared: one rank, one micro-batch.
MicroBatch next_row(Loader& loader) { return loader.next(0, 1, 1, 1).micro_batches.at(0); }

// Every pair (token, target) of a row; in this index pairs name their document and place only
// modulo 256, so counts of pairs are compared.
using Pairs = std::map<std::pair<int, int>, int>;

void add_pairs(const MicroBatch& batch, Pairs& pairs) {
  for (std::size_t t = 0; t < batch.tokens.size(); ++t)
    if (batch.targets[t] != kNoTarget) ++pairs[{batch.tokens[t], batch.targets[t]}];
}

Pairs pairs_of(const Index& index) {
  Pairs pairs;
  for (std::int64_t d = 0; d < index.num_documents(); ++d)
    for (std::int64_t t = 1; t < index.document(d).size(); ++t)
      ++pairs[{index.document(d)[t - 1], index.document(d)[t]}];
  return pairs;
}

std::int64_t targets_of(const std::vector<int>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) - std::ssize(lengths);
}

RC_GTEST_PROP(Loader, EveryTargetOnceAnEpoch, ()) {
  const Case c = any_case();
  const auto index = index_of_lengths(c.lengths);
  Loader loader(index, options(c));
  const int ranks = *rc::gen::inRange(1, 4);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    Pairs pairs;
    while (loader.position().tokens_total < targets_of(c.lengths) * (epoch + 1))
      add_pairs(next_row(loader), pairs);
    RC_ASSERT(pairs == pairs_of(*index));
  }
  const auto with_targets = std::ranges::count_if(c.lengths, [](int n) { return n > 1; });
  RC_ASSERT(loader.position().documents_total == 2 * with_targets);

  Loader once(index, options(c, false));
  Pairs pairs;
  while (!once.at_end()) {  // all ranks of a pass: each rank's loader must be driven alike
    const Position before = once.position();
    for (int rank = 0; rank < ranks; ++rank) {
      once.restore(before);
      for (const MicroBatch& batch : once.next(rank, ranks, 2, 3).micro_batches)
        add_pairs(batch, pairs);
    }
  }
  RC_ASSERT(pairs == pairs_of(*index));
}

RC_GTEST_PROP(Loader, RowsAreWellFormed, ()) {
  const Case c = any_case();
  Loader loader(index_of_lengths(c.lengths), options(c));
  for (int step = 0; step < 5; ++step) {
    const MicroBatch batch = loader.next(0, 1, 1, 2).micro_batches.at(0);
    std::int64_t end = 0;
    for (const DocumentSpan& span : batch.documents) {
      RC_ASSERT(span.begin == end && span.end > span.begin);
      RC_ASSERT(span.begin / c.sequence == (span.end - 1) / c.sequence);
      const bool padding = batch.tokens[static_cast<std::size_t>(span.begin)] == kBytePad;
      if (padding) RC_ASSERT(span.end % c.sequence == 0);
      for (std::int64_t t = span.begin; t < span.end; ++t) {
        const auto i = static_cast<std::size_t>(t);
        RC_ASSERT(batch.positions[i] == t - span.begin);
        RC_ASSERT((batch.targets[i] == kNoTarget) == padding);
        if (!padding && t + 1 < span.end) RC_ASSERT(batch.targets[i] == batch.tokens[i + 1]);
      }
      end = span.end;
    }
    RC_ASSERT(end == batch.num_tokens());
  }
}

RC_GTEST_PROP(Loader, RowsDoNotDependOnRanks, ()) {
  const Case c = any_case();
  const auto index = index_of_lengths(c.lengths);
  const int ranks = *rc::gen::inRange(1, 5);
  const auto micro_batches = *rc::gen::inRange<std::int64_t>(1, 4);
  const auto rows_each = *rc::gen::inRange<std::int64_t>(1, 4);
  Loader alone(index, options(c));
  std::vector<MicroBatch> rows;
  for (std::int64_t i = 0; i < micro_batches * ranks; ++i)
    rows.push_back(alone.next(0, 1, 1, rows_each).micro_batches.at(0));
  for (int rank = 0; rank < ranks; ++rank) {
    Loader loader(index, options(c));
    const StepRows step = loader.next(rank, ranks, micro_batches, rows_each);
    for (std::int64_t i = 0; i < micro_batches; ++i)
      RC_ASSERT(step.micro_batches[static_cast<std::size_t>(i)] ==
                rows[static_cast<std::size_t>(i * ranks + rank)]);
    RC_ASSERT(loader.position() == alone.position());
  }
}

RC_GTEST_PROP(Loader, RestoredAnywhereItGoesOnTheSame, ()) {
  const Case c = any_case();
  const auto index = index_of_lengths(c.lengths);
  Loader loader(index, options(c));
  const int rows = *rc::gen::inRange(0, 40);
  for (int i = 0; i < rows; ++i) next_row(loader);
  Loader restored(index, options(c));
  restored.restore(position_from_json_text(to_json_text(loader.position())));
  for (int i = 0; i < 30; ++i) RC_ASSERT(next_row(restored) == next_row(loader));
  RC_ASSERT(restored.position() == loader.position());
}

// Through any number of changes of shape, each target comes once an epoch.
RC_GTEST_PROP(Loader, AChangeOfShapeLosesAndRepeatsNothing, ()) {
  const Case c = any_case();
  const auto index = index_of_lengths(c.lengths);
  auto loader = std::make_unique<Loader>(index, options(c));
  Pairs pairs;
  const std::int64_t wanted = targets_of(c.lengths);
  while (loader->position().tokens_total < wanted) {
    const int rows = *rc::gen::inRange(0, 6);
    for (int i = 0; i < rows && loader->position().tokens_total < wanted; ++i)
      add_pairs(next_row(*loader), pairs);
    const Position at = loader->position();
    const Case next{{},
                    *rc::gen::inRange<std::int64_t>(1, 20),
                    *rc::gen::inRange<std::int64_t>(1, 12),
                    any_strategy()};
    loader = std::make_unique<Loader>(index, options(next));
    loader->restore(at);
    if (rows == 0) add_pairs(next_row(*loader), pairs);
  }
  RC_ASSERT(loader->position().tokens_total == wanted);
  RC_ASSERT(pairs == pairs_of(*index));
  const auto with_targets = std::ranges::count_if(c.lengths, [](int n) { return n > 1; });
  RC_ASSERT(loader->position().documents_total == with_targets);
}

// Whatever is silent, in documents that are cut anywhere: each row has the other targets alone.
RC_GTEST_PROP(Loader, SilentTokensAreNoTargetsOfAnyRow, ()) {
  MemoryIndex::Documents documents;
  MemoryIndex::Silent silent;
  std::map<std::int32_t, int> wanted;  // each token is its own document and place
  for (int d = 0; d < 6; ++d) {
    const auto loud = *rc::gen::container<std::vector<bool>>(*rc::gen::inRange<std::size_t>(2, 30),
                                                             rc::gen::arbitrary<bool>());
    documents.emplace_back();
    silent.emplace_back();
    for (std::size_t t = 0; t < loud.size(); ++t) {
      documents.back().push_back(static_cast<std::uint16_t>(d * 40 + static_cast<int>(t)));
      const auto place = static_cast<std::int64_t>(t);
      if (!loud[t]) silent.back().push_back({place, place + 1});
      if (loud[t] && t > 0) ++wanted[documents.back().back()];
    }
  }
  const auto total = static_cast<std::int64_t>(wanted.size());
  const auto sequence = *rc::gen::inRange<std::int64_t>(1, 20);
  RC_PRE(total > 0);
  Loader loader(memory_index(documents, silent), options(sequence, 3, false));
  std::map<std::int32_t, int> seen;
  while (!loader.at_end())
    for (const std::int32_t target : next_row(loader).targets)
      if (target != kNoTarget) ++seen[target];
  RC_ASSERT(seen == wanted);
  RC_ASSERT(loader.position().tokens_total == total);
}

// Two sources, 1 document in rows of its own: the weights say how often each comes.
TEST(Loader, WeightsSayHowOftenASourceComes) {
  auto index = std::make_shared<MemoryIndex>(
      MemoryIndex::Documents{{'a', kByteEos}, {'b', kByteEos}, {'c', kByteEos}, {'d', kByteEos}});
  index->set_sources({0, 2, 4});
  Loader::Options weighted = options(1, 4);
  weighted.weights = {0.5, 2};
  Loader loader(index, weighted);
  std::map<std::int32_t, int> seen;
  Position middle;
  std::vector<MicroBatch> rest;
  for (int row = 0; row < 20; ++row) {  // four epochs of 1 + 4 documents
    if (row == 7) middle = loader.position();
    const MicroBatch batch = next_row(loader);
    ++seen[batch.tokens.front()];
    if (row >= 7) rest.push_back(batch);
  }
  EXPECT_EQ(seen, (std::map<std::int32_t, int>{{'a', 2}, {'b', 2}, {'c', 8}, {'d', 8}}));
  Loader again(index, weighted);
  again.restore(position_from_json_text(to_json_text(middle)));
  for (const MicroBatch& batch : rest) EXPECT_EQ(next_row(again), batch);
  EXPECT_THROW(Loader(index, options(1, 4)).restore(middle), EngineError);
}

TEST(Loader, OtherSeedsAndEpochsGiveOtherOrders) {
  const auto index = index_of_lengths(std::vector<int>(50, 5));
  Loader a(index, options(4));
  Loader::Options other = options(4);
  other.seed = 8;
  Loader b(index, other);
  std::vector<MicroBatch> first, second, seeded;
  for (int i = 0; i < 50; ++i) first.push_back(next_row(a)), seeded.push_back(next_row(b));
  for (int i = 0; i < 50; ++i) second.push_back(next_row(a));
  EXPECT_NE(first, seeded);
  EXPECT_NE(first, second);
}

// Documents of one row each: where a window's rows come from in the order of its documents.
TEST(Loader, EachWindowIsShuffledInItsOwnWay) {
  constexpr std::int64_t kWindow = 32;
  Loader loader(index_of_lengths(std::vector<int>(2 * kWindow, 5)), options(4, kWindow));
  std::set<std::vector<std::int64_t>> shuffles;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto order = packing::weighted_order(7, epoch, {{0, 2 * kWindow}});
    for (std::int64_t window = 0; window < 2; ++window) {
      std::vector<std::int64_t> places;
      for (std::int64_t row = 0; row < kWindow; ++row) {
        const std::int32_t token = next_row(loader).tokens.front();
        const auto found = std::ranges::find_if(
            order, [&](std::int64_t document) { return document * 31 % 256 == token; });
        places.push_back(found - order.begin() - window * kWindow);
      }
      EXPECT_EQ(std::ranges::min(places), 0);
      EXPECT_EQ(std::ranges::max(places), kWindow - 1);
      shuffles.insert(places);
    }
  }
  EXPECT_EQ(shuffles.size(), 4u);
}

}  // namespace
}  // namespace ptrain::data
