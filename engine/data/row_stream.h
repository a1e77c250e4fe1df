#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/packing/random.h"
#include "core/packing/window.h"
#include "engine/data/loader.h"

namespace ptrain::data {

// The rows of all ranks, one after the other: windows of the epoch's document order, packed one at
// a time.
class RowStream {
 public:
  RowStream(std::shared_ptr<const Index> index, Loader::Options options);

  // The next row; empty (all padding) past the end of an only pass.
  packing::Row take();
  const Position& position() const { return position_; }
  void restore(const Position& position);
  bool at_end();

 private:
  void next_window();
  void pack();          // rows_ of the window that position_ names
  void begin_window();  // how many new documents the window takes
  void change_packer();
  packing::Packer packer() const;  // as this run wants it
  void check(const Position& position) const;
  std::vector<packing::Range> window_ranges();

  std::shared_ptr<const Index> index_;
  Loader::Options options_;
  Position position_;
  std::vector<packing::WeightedSource> sources_;
  std::string identity_;
  std::vector<std::int64_t> order_;  // of epoch order_epoch_
  std::int64_t order_epoch_ = 0;
  std::int64_t num_places_ = 0;  // documents of an epoch, those that come twice counted twice
  std::vector<packing::Row> rows_;
};

}  // namespace ptrain::data
