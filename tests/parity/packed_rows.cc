#include "tests/parity/packed_rows.h"

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "engine/data/loader.h"

namespace ptrain::parity {
namespace {

using Documents = std::vector<std::vector<std::uint16_t>>;

class RandomText final : public data::Index {
 public:
  RandomText(Documents documents, std::int32_t vocabulary)
      : documents_(std::move(documents)), vocabulary_(static_cast<std::uint32_t>(vocabulary)) {}
  std::int64_t num_documents() const override { return std::ssize(documents_); }
  data::Tokens document(std::int64_t index) const override {
    const auto& document = documents_.at(static_cast<std::size_t>(index));
    return data::Tokens(std::span<const std::uint16_t>(document));
  }
  std::vector<data::TokenRange> silent(std::int64_t) const override { return {}; }
  std::uint32_t vocabulary() const override { return vocabulary_; }
  std::uint32_t pad() const override { return 1; }
  std::vector<std::int64_t> sources() const override { return {0, num_documents()}; }
  const std::string& content_hash() const override { return hash_; }

 private:
  Documents documents_;
  std::uint32_t vocabulary_;
  std::string hash_ = "random";
};

// Lengths are even on a logarithmic scale.
Documents random_documents(const PackedRows& wanted) {
  std::mt19937_64 random(wanted.seed);
  const double longest = std::log(static_cast<double>(wanted.sequence));
  Documents documents;
  std::int64_t left = wanted.num_rows * wanted.sequence;
  while (left > 0) {
    const double share = static_cast<double>(random() % 1024) / 1024;
    const auto length = static_cast<std::int64_t>(2 * std::exp(share * longest));
    auto& document = documents.emplace_back();
    for (std::int64_t i = 0; i < length; ++i)
      document.push_back(
          static_cast<std::uint16_t>(random() % static_cast<unsigned>(wanted.vocabulary)));
    left -= length;
  }
  return documents;
}

}  // namespace

std::vector<data::MicroBatch> packed_rows(const PackedRows& wanted) {
  data::Loader::Options options;
  options.seed = wanted.seed;
  options.sequence = wanted.sequence;
  options.packing.strategy = wanted.strategy;
  data::Loader loader(std::make_shared<RandomText>(random_documents(wanted), wanted.vocabulary),
                      options);
  return loader.next(0, 1, wanted.num_rows, 1).micro_batches;
}

}  // namespace ptrain::parity
