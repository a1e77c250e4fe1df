#include "engine/data/row_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/packing/random.h"
#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::data {
namespace {

// Beyond any row; keeps sums of positions from a foreign file inside 64 bits.
constexpr std::int64_t kLongestRow = std::int64_t{1} << 40;

bool has_targets(const Index& index) {
  for (std::int64_t i = 0; i < index.num_documents(); ++i)
    if (count_targets(index, packing::whole_document(i, index.document(i).size())) > 0) return true;
  return false;
}

[[noreturn]] void refuse(const char* reason, const char* hint) {
  throw EngineError(ExitCode::kUnusable,
                    std::string("the data position of the checkpoint cannot be used: ") + reason,
                    hint);
}

// What a position is a position in: the documents, and how often each comes.
std::string identity_of(const Index& index, const std::vector<double>& weights) {
  std::string text = index.content_hash();
  if (std::ranges::any_of(weights, [](double weight) { return weight != 1; }))
    text += fmt::format(" weights {}", fmt::join(weights, " "));
  return text;
}

}  // namespace

RowStream::RowStream(std::shared_ptr<const Index> index, Loader::Options options)
    : index_(std::move(index)),
      options_(std::move(options)),
      sources_(packing::sources_from(index_->sources(), options_.weights)),
      identity_(identity_of(*index_, options_.weights)),
      order_(packing::weighted_order(options_.seed, 0, sources_)),
      num_places_(std::ssize(order_)) {
  PT_CHECK(options_.sequence >= 1 && options_.packing.window >= 1);
  if (!has_targets(*index_))
    throw EngineError(
        ExitCode::kUnusable, "no document of the data has a token to predict",
        "give files with more text; of messages and prompts only answers are learned, "
        "unless data.loss_on is all");
  position_.packer = packer();
  position_.seed = options_.seed;
  position_.index_hash = identity_;
  begin_window();
  pack();
}

packing::Packer RowStream::packer() const { return {options_.packing.strategy, options_.sequence}; }

packing::Row RowStream::take() {
  if (at_end()) return {};
  packing::Row row = rows_[static_cast<std::size_t>(position_.row++)];
  for (const packing::Range& range : row) {
    position_.tokens_total += count_targets(*index_, range);
    if (range.begin == 0) ++position_.documents_total;
  }
  return row;
}

// A window may have no row at all (documents of one token), so this may pass several.
bool RowStream::at_end() {
  while (position_.row == static_cast<std::int64_t>(rows_.size())) {
    const bool last = position_.first_document + position_.num_documents == num_places_;
    if (last && !options_.repeat) return true;
    next_window();
  }
  return false;
}

void RowStream::next_window() {
  position_.first_document += position_.num_documents;
  position_.carried.clear();
  ++position_.window;
  if (position_.first_document == num_places_) {
    ++position_.epoch;
    position_.window = 0;
    position_.first_document = 0;
  }
  begin_window();
  pack();
}

void RowStream::begin_window() {
  const std::int64_t room =
      options_.packing.window - static_cast<std::int64_t>(position_.carried.size());
  const std::int64_t left = num_places_ - position_.first_document;
  position_.num_documents = std::clamp<std::int64_t>(room, 0, left);
  position_.row = 0;
}

std::vector<packing::Range> RowStream::window_ranges() {
  if (order_epoch_ != position_.epoch) {
    order_ = packing::weighted_order(options_.seed, position_.epoch, sources_);
    order_epoch_ = position_.epoch;
  }
  std::vector<packing::Range> ranges = position_.carried;
  for (std::int64_t i = 0; i < position_.num_documents; ++i) {
    const std::int64_t document = order_[static_cast<std::size_t>(position_.first_document + i)];
    const packing::Range whole =
        packing::whole_document(document, index_->document(document).size());
    if (count_targets(*index_, whole) > 0) ranges.push_back(whole);
  }
  return ranges;
}

void RowStream::pack() {
  const std::uint64_t key = packing::stream_key(options_.seed, packing::Draw::kRowOrder,
                                                position_.epoch, position_.window);
  rows_ = packing::pack_window(window_ranges(), position_.packer, key);
}

void RowStream::restore(const Position& position) {
  check(position);
  position_ = position;
  if (planted(Bug::kRowTwice) && position_.row > 0) --position_.row;
  pack();
  if (planted(Bug::kRowLost) && position_.row < std::ssize(rows_)) ++position_.row;
  if (position_.row > static_cast<std::int64_t>(rows_.size()))
    refuse("its window has fewer rows", "resume from an older checkpoint");
  if (position_.packer != packer()) change_packer();
}

void RowStream::change_packer() {
  position_.carried = packing::unused_ranges(rows_, position_.row);
  if (planted(Bug::kCarriedLost)) position_.carried.clear();
  position_.first_document += position_.num_documents;
  position_.packer = packer();
  ++position_.window;
  begin_window();
  pack();
}

void RowStream::check(const Position& position) const {
  if (position.index_hash != identity_)
    refuse("it belongs to other data", "give the data that the checkpoint was trained on");
  if (position.seed != options_.seed)
    refuse("it belongs to another seed", "give the seed that the checkpoint was trained with");
  bool fits = position.packer.sequence >= 1 && position.packer.sequence <= kLongestRow &&
              position.row >= 0 && position.epoch >= 0 && position.window >= 0 &&
              position.first_document >= 0 && position.num_documents >= 0 &&
              position.first_document <= num_places_ &&
              position.num_documents <= num_places_ - position.first_document;
  for (const packing::Range& range : position.carried)
    fits = fits && range.document >= 0 && range.document < index_->num_documents() &&
           range.begin >= 0 && range.begin < range.end &&
           range.end < index_->document(range.document).size();
  if (!fits) refuse("it points outside the data", "resume from an older checkpoint");
}

}  // namespace ptrain::data
