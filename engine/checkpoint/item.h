#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/dcp/boxes.h"

namespace ptrain::checkpoint {

// Elements [begin, end) of a part of the tensor `key`, flattened, in this rank's memory. What all
// ranks save covers each tensor exactly once.
struct TensorItem {
  std::string key;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;  // of the whole tensor; empty: a scalar
  std::int64_t begin = 0;
  std::int64_t end = 0;
  void* data = nullptr;        // read by save, written by load
  std::int64_t head_rows = 0;  // load only; > 0: stored with interleaved rows (dcp::pieces_of_run)
  // In place of `data` where the run is not in memory: brings it there, until the next item's run
  // is brought, and keeps what is written to it where `writes`.
  std::function<void*(bool writes)> bring = {};
  dcp::Box part = {};  // no dims: the whole tensor

  dcp::Box box() const {
    return part.sizes.empty() ? dcp::Box{dcp::Sizes(shape.size(), 0), shape} : part;
  }

  // For saving and loading, which use one item after the other.
  const std::byte* source() const {
    return static_cast<const std::byte*>(bring ? bring(false) : data);
  }
  std::byte* target() const { return static_cast<std::byte*>(bring ? bring(true) : data); }
};

// A plain value: integer, double, bool, text, or a list of these.
struct ValueItem {
  std::string key;
  nlohmann::json value;
};

struct Items {
  std::vector<TensorItem> tensors;
  std::vector<ValueItem> values;  // the same on every rank; rank 0 writes them

  // Whether runs are brought to memory, which must happen one after the other.
  bool brings_any() const {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const TensorItem& item) { return bool{item.bring}; });
  }
};

}  // namespace ptrain::checkpoint
