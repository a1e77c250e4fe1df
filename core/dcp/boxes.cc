#include "core/dcp/boxes.h"

#include <algorithm>

#include "core/base/divide.h"

namespace ptrain::dcp {

namespace {

// Cuts a run below the dim `d`; `origin` are the offsets of the dims above, whose sizes are 1.
class Cutter {
 public:
  Cutter(const Sizes& shape, std::int64_t max_elements)
      : shape_(shape), inner_(row_major_strides(shape)), max_elements_(max_elements) {
    at_.assign(shape.size(), 0);
  }

  void cut(std::size_t d, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (d == shape_.size()) {
      boxes_.push_back({at_, Sizes(shape_.size(), 1)});
      return;
    }
    const std::int64_t inner = inner_[d];
    const std::int64_t first = divide_up(begin, inner);  // whole rows [first, last)
    const std::int64_t last = end / inner;
    if (first > last) return part(d, last, begin, end);  // inside one row
    part(d, first - 1, begin, first * inner);
    rows(d, first, last);
    part(d, last, last * inner, end);
  }

  std::vector<Box> take() { return std::move(boxes_); }

 private:
  void part(std::size_t d, std::int64_t row, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    at_[d] = row;
    cut(d + 1, begin - row * inner_[d], end - row * inner_[d]);
    at_[d] = 0;
  }

  void rows(std::size_t d, std::int64_t first, std::int64_t last) {
    const std::int64_t step = max_elements_ == 0 ? last - first : max_elements_ / inner_[d];
    for (std::int64_t row = first; row < last; row += std::max<std::int64_t>(step, 1)) {
      if (max_elements_ > 0 && step == 0) {  // one row is above the limit: cut it further down
        part_limited(d, row);
        continue;
      }
      Box box{at_, shape_};
      std::fill_n(box.sizes.begin(), d, 1);
      box.offsets[d] = row;
      box.sizes[d] = std::min(step, last - row);
      boxes_.push_back(std::move(box));
    }
  }

  void part_limited(std::size_t d, std::int64_t row) {
    at_[d] = row;
    cut(d + 1, 0, inner_[d]);
    at_[d] = 0;
  }

  const Sizes& shape_;
  Sizes inner_;  // elements of one row of each dim
  std::int64_t max_elements_;
  Sizes at_;
  std::vector<Box> boxes_;
};

void add(std::vector<Copy>& copies, const Copy& copy) {
  if (!copies.empty()) {
    Copy& last = copies.back();
    if (last.source + last.count == copy.source && last.target + last.count == copy.target) {
      last.count += copy.count;
      return;
    }
  }
  copies.push_back(copy);
}

// Walks the innermost lines of a box and copies each; where the storage's elements do not lie side
// by side, element by element.
class LineWalk {
 public:
  LineWalk(const Sizes& shape, const Sizes& offsets, const StoredTensor& stored, std::int64_t begin)
      : flat_(row_major_strides(shape)), chunk_(offsets), stored_(stored), begin_(begin) {}

  void walk(const Box& box, std::vector<Copy>& copies) {
    std::int64_t source = stored_.offset;
    std::int64_t target = -begin_;
    for (std::size_t d = 0; d < chunk_.size(); ++d) {
      source += (box.offsets[d] - chunk_[d]) * stored_.strides[d];
      target += box.offsets[d] * flat_[d];
    }
    descend(0, box, {source, target, 1}, copies);
  }

 private:
  void descend(std::size_t d, const Box& box, Copy at, std::vector<Copy>& copies) {
    if (d == chunk_.size()) return add(copies, at);
    if (d + 1 == chunk_.size() && stored_.strides[d] == 1)
      return add(copies, {at.source, at.target, box.sizes[d]});
    for (std::int64_t i = 0; i < box.sizes[d]; ++i) {
      descend(d + 1, box, at, copies);
      at.source += stored_.strides[d];
      at.target += flat_[d];
    }
  }

  Sizes flat_;
  const Sizes& chunk_;
  const StoredTensor& stored_;
  std::int64_t begin_;
};

}  // namespace

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box common = a;
  for (std::size_t d = 0; d < a.sizes.size(); ++d) {
    const std::int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    const std::int64_t end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    if (begin >= end) return std::nullopt;
    common.offsets[d] = begin;
    common.sizes[d] = end - begin;
  }
  return common;
}

Box relative_to(const Sizes& origin, Box box) {
  for (std::size_t d = 0; d < origin.size(); ++d) box.offsets[d] -= origin[d];
  return box;
}

StoredTensor stored_part(StoredTensor stored, const Box& chunk, const Box& part) {
  for (std::size_t d = 0; d < part.sizes.size(); ++d)
    stored.offset += (part.offsets[d] - chunk.offsets[d]) * stored.strides[d];
  stored.sizes = part.sizes;
  return stored;
}

std::int64_t volume(const Sizes& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::vector<Box> boxes_of_run(const Sizes& shape, std::int64_t begin, std::int64_t end,
                              std::int64_t max_elements) {
  Cutter cutter(shape, max_elements);
  cutter.cut(0, begin, end);
  return cutter.take();
}

std::vector<Copy> overlap(const Sizes& shape, const Run& run, const Sizes& offsets,
                          const StoredTensor& stored) {
  std::vector<Copy> copies;
  LineWalk lines(shape, offsets, stored, run.begin);
  for (const Box& wanted : boxes_of_run(shape, run.begin, run.end)) {
    if (const auto common = intersection(wanted, {offsets, stored.sizes}))
      lines.walk(*common, copies);
  }
  return copies;
}

std::vector<Piece> pieces_of_run(const Sizes& shape, const Run& run, std::int64_t head_rows) {
  if (head_rows == 0) return {{run, 0}};
  const std::int64_t row = volume({shape.begin() + 1, shape.end()});
  const std::int64_t half = head_rows / 2;
  std::vector<Piece> pieces;
  for (std::int64_t at = run.begin; at < run.end;) {
    const std::int64_t head = at / row / head_rows;
    const std::int64_t in_head = at / row % head_rows;
    const std::int64_t stored_row = head * head_rows + 2 * (in_head % half) + in_head / half;
    const std::int64_t end = std::min(run.end, (at / row + 1) * row);
    const std::int64_t begin = stored_row * row + at % row;
    pieces.push_back({{begin, begin + end - at}, at - run.begin});
    at = end;
  }
  return pieces;
}

}  // namespace ptrain::dcp
