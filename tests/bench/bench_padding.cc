// What packing is worth: useful tokens (targets) per CPU second of the quickstart's model, data and
// engine on one thread, in packed rows and in batches of 8 documents in random order that are each
// padded to their batch's longest. Documents longer than a row are cut alike, into pieces of a row
// and a rest. A padded row is one sequence to attention, its padding the last. Rows of a batch run
// one at a time, which needs less memory and costs the same. Run with OMP_NUM_THREADS=1. Arguments:
// tokens of a row, batches of 8.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/packing/window.h"
#include "engine/base/engine_error.h"
#include "engine/data/loader.h"
#include "tests/bench/shape.h"
#include "tests/support/layer_model.h"

namespace ptrain {
namespace {

constexpr std::int64_t kBatch = 8;

struct Measure {
  double seconds = 0;
  std::int64_t targets = 0, tokens = 0;
  double rate() const { return static_cast<double>(targets) / seconds; }
  double share() const { return static_cast<double>(targets) / static_cast<double>(tokens); }
};

void run(test::LayerModel& model, const data::MicroBatch& row, Measure& measure) {
  const double begin = bench::cpu_seconds();
  model.step(row);
  measure.seconds += bench::cpu_seconds() - begin;
  measure.targets += row.num_targets();
  measure.tokens += row.num_tokens();
}

std::shared_ptr<const data::Index> quickstart_index() {
  recipe::Data data;
  data.train = {{"/usr/include/**/*.h"}};
  data.validation_fraction = 0.05;
  return data::open_index(data::prepare_index(data, "").train);
}

// Pieces of at most a row, in random order.
std::vector<packing::Range> pieces_of(const data::Index& index, std::int64_t row) {
  std::vector<packing::Range> pieces;
  for (std::int64_t i = 0; i < index.num_documents(); ++i)
    for (std::int64_t begin = 0, end = index.document(i).size() - 1; begin < end; begin += row)
      pieces.push_back({i, begin, std::min(begin + row, end)});
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937_64(1));
  return pieces;
}

data::MicroBatch padded(const data::Index& index, const packing::Range& piece,
                        std::int64_t length) {
  data::MicroBatch row = data::rows_of_one_document(1, length);
  const auto document = index.document(piece.document);
  for (std::int64_t i = 0; i < piece.length(); ++i) {
    row.tokens.push_back(static_cast<std::int32_t>(document[piece.begin + i]));
    row.targets.push_back(static_cast<std::int32_t>(document[piece.begin + i + 1]));
  }
  row.tokens.resize(static_cast<std::size_t>(length), static_cast<std::int32_t>(index.pad()));
  row.targets.resize(static_cast<std::size_t>(length), data::kNoTarget);
  return row;
}

Measure run_padded(test::LayerModel& model, const data::Index& index, std::int64_t row,
                   std::int64_t batches) {
  Measure measure;
  const auto pieces = pieces_of(index, row);
  const auto most = std::min(batches * kBatch, std::ssize(pieces) / kBatch * kBatch);
  for (auto first = pieces.begin(); first != pieces.begin() + most; first += kBatch) {
    const auto longest = std::ranges::max(std::span(first, kBatch), {}, &packing::Range::length);
    for (const packing::Range& piece : std::span(first, kBatch))
      run(model, padded(index, piece, longest.length()), measure);
  }
  return measure;
}

// As many useful tokens as the padded batches had.
Measure run_packed(test::LayerModel& model, std::shared_ptr<const data::Index> index,
                   std::int64_t row, std::int64_t targets) {
  data::Loader::Options options;
  options.seed = 1;
  options.sequence = row;
  data::Loader loader(std::move(index), options);
  Measure measure;
  while (measure.targets < targets) run(model, loader.next(0, 1, 1, 1).micro_batches[0], measure);
  return measure;
}

void compare(std::int64_t row, std::int64_t batches) {
  test::LayerModel model(bench::architecture_of({4, 256, 8, 4, 768, 320, 1, row, 1}));
  for (std::size_t i = 0; i < model.num_parameters(); ++i)
    std::fill_n(model.parameter(i).as<float>(), model.parameter(i).num_elements(), 0.01f);
  const auto index = quickstart_index();
  Measure warm_up;
  run(model, data::Loader(index, {1, row, {}}).next(0, 1, 1, 1).micro_batches[0], warm_up);
  const Measure padded = run_padded(model, *index, row, batches);
  const Measure packed = run_packed(model, index, row, padded.targets);
  fmt::print(R"({{"row": {}, "padded_tok_cpu_s": {:.0f}, "packed_tok_cpu_s": {:.0f}, )"
             R"("padded_useful": {:.3f}, "packed_useful": {:.3f}, "ratio": {:.2f}}})"
             "\n",
             row, padded.rate(), packed.rate(), padded.share(), packed.share(),
             packed.rate() / padded.rate());
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  try {
    ptrain::compare(argc > 1 ? std::atoll(argv[1]) : 8192, argc > 2 ? std::atoll(argv[2]) : 10);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
