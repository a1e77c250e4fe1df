#include "core/data/sentencepiece_facts.h"

#include <functional>
#include <string>
#include <unordered_map>

namespace ptrain::data {
namespace {

using Bytes = std::span<const std::byte>;

// Fields of sentencepiece_model.proto, by message.
constexpr std::uint64_t kModelPieces = 1, kModelTrainer = 2;
constexpr std::uint64_t kPieceText = 1, kPieceType = 3, kControl = 3;
constexpr std::uint64_t kTrainerEosPiece = 47;

struct WireField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a number
  Bytes bytes;              // of a text or message
};

// The fields of a message of a protocol buffer, one after the other.
class WireReader {
 public:
  explicit WireReader(Bytes bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }

  // False: the bytes are no message.
  bool next(WireField& field) {
    std::uint64_t tag = 0, length = 0;
    if (!varint(tag)) return false;
    field = {tag >> 3, 0, {}};
    switch (tag & 7) {
      case 0:
        return varint(field.value);
      case 1:
        return take(8, field.bytes);
      case 2:
        return varint(length) && take(length, field.bytes);
      case 5:
        return take(4, field.bytes);
      default:
        return false;
    }
  }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(bytes_.front());
      bytes_ = bytes_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t length, Bytes& taken) {
    if (length > bytes_.size()) return false;
    taken = bytes_.first(static_cast<std::size_t>(length));
    bytes_ = bytes_.subspan(taken.size());
    return true;
  }

  Bytes bytes_;
};

bool for_fields(Bytes message, const std::function<bool(const WireField&)>& act) {
  WireReader reader(message);
  WireField field;
  while (!reader.at_end())
    if (!reader.next(field) || !act(field)) return false;
  return true;
}

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Reading {
  std::int64_t num_pieces = 0;
  std::unordered_map<std::string, std::int64_t> controls;
  std::string eos_piece = "</s>";

  bool read_piece(Bytes message) {
    std::string text;
    std::uint64_t type = 0;
    const bool good = for_fields(message, [&](const WireField& field) {
      if (field.number == kPieceText) text = text_of(field.bytes);
      if (field.number == kPieceType) type = field.value;
      return true;
    });
    if (type == kControl) controls.emplace(std::move(text), num_pieces);
    ++num_pieces;
    return good;
  }
  bool read_trainer(Bytes message) {
    return for_fields(message, [&](const WireField& field) {
      if (field.number == kTrainerEosPiece) eos_piece = text_of(field.bytes);
      return true;
    });
  }
};

}  // namespace

Result<SentencePieceFacts> sentencepiece_facts(Bytes bytes) {
  Reading reading;
  const bool good = for_fields(bytes, [&](const WireField& field) {
    if (field.number == kModelPieces) return reading.read_piece(field.bytes);
    if (field.number == kModelTrainer) return reading.read_trainer(field.bytes);
    return true;
  });
  if (!good) return fail(ExitCode::kUnusable, "it is no SentencePiece model, or is cut short");
  if (reading.num_pieces == 0) return fail(ExitCode::kUnusable, "it holds no pieces");
  const auto eos = reading.controls.find(reading.eos_piece);
  return SentencePieceFacts{reading.num_pieces, eos == reading.controls.end() ? -1 : eos->second};
}

}  // namespace ptrain::data
