#include "core/dcp/cover.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::dcp {
namespace {

using Boxes = std::vector<const Box*>;

// Goes through a dim slab by slab: between two neighbouring ends of boxes, all rows are alike.
class Sweep {
 public:
  explicit Sweep(const Sizes& shape) : shape_(shape), strides_(row_major_strides(shape)) {}

  // `boxes`: those that hold the rows of the dims above dim `d`, whose first element is `flat`.
  std::optional<std::string> run(std::size_t d, Boxes boxes, std::int64_t flat) const {
    if (boxes.empty()) return hole(flat, flat + (d == 0 ? volume(shape_) : strides_[d - 1]));
    if (d == shape_.size()) {
      if (boxes.size() == 1) return std::nullopt;
      return fmt::format("element {} is held twice", flat);
    }
    std::ranges::sort(boxes, {}, [d](const Box* box) { return box->offsets[d]; });
    Boxes open;
    std::size_t next = 0;
    for (std::int64_t row = 0; row < shape_[d];) {
      std::erase_if(open, [&](const Box* box) { return end(*box, d) <= row; });
      while (next < boxes.size() && boxes[next]->offsets[d] == row) open.push_back(boxes[next++]);
      const std::int64_t last = slab_end(d, open, next < boxes.size() ? boxes[next] : nullptr);
      if (open.empty()) return hole(flat + row * strides_[d], flat + last * strides_[d]);
      const bool alone = open.size() == 1 && holds_rest(*open.front(), d + 1);
      if (!alone)
        if (auto broken = run(d + 1, open, flat + row * strides_[d])) return broken;
      row = last;
    }
    return std::nullopt;
  }

 private:
  static std::int64_t end(const Box& box, std::size_t d) { return box.offsets[d] + box.sizes[d]; }

  // All of the dims from `d` on: most boxes are whole rows.
  bool holds_rest(const Box& box, std::size_t d) const {
    return std::equal(box.sizes.begin() + static_cast<std::ptrdiff_t>(d), box.sizes.end(),
                      shape_.begin() + static_cast<std::ptrdiff_t>(d));
  }

  static std::string hole(std::int64_t begin, std::int64_t end) {
    return fmt::format("elements {} to {} are held by no rank", begin, end);
  }

  std::int64_t slab_end(std::size_t d, const Boxes& open, const Box* next) const {
    std::int64_t last = next != nullptr ? next->offsets[d] : shape_[d];
    for (const Box* box : open) last = std::min(last, end(*box, d));
    return last;
  }

  const Sizes& shape_;
  Sizes strides_;
};

}  // namespace

std::optional<std::string> uncovered(const Sizes& shape, std::vector<const Box*> boxes) {
  return Sweep(shape).run(0, std::move(boxes), 0);
}

}  // namespace ptrain::dcp
