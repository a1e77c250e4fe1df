#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/packing/window.h"

namespace ptrain::data {

// Where the row stream stands. Independent of the number of ranks; part of every checkpoint. A
// window holds `carried` and then `num_documents` documents of the epoch's order from
// `first_document`; with seed, epoch and window number that gives its rows, so no row itself is
// saved.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t window = 0;          // within the epoch
  std::int64_t row = 0;             // rows of the window already given out
  packing::Packer packer;           // of the window
  std::int64_t first_document = 0;  // in the epoch's order
  std::int64_t num_documents = 0;
  std::vector<packing::Range> carried;  // packed by the last shape, not given out
  std::int64_t documents_total = 0;     // begun since the start of the run
  std::int64_t tokens_total = 0;        // targets since the start of the run
  std::uint64_t seed = 0;               // with index_hash: what the position is a position in
  std::string index_hash;
  bool operator==(const Position&) const = default;
};

std::string to_json_text(const Position& position);
Position position_from_json_text(const std::string& text);  // EngineError when it cannot be read

}  // namespace ptrain::data
