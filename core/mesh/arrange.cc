// Arrangements in any order. For a size of the shards, units are taken one by one: whichever leaves
// the smallest gap behind what lies already, the one of the largest block among equals. What may be
// cut anywhere fills gaps, and the end.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/divide.h"
#include "core/mesh/unit.h"

namespace ptrain::mesh {
namespace {

// Sizes that are tried before the order given is good enough.
constexpr int kMostTries = 200;

// Units that are alike, so that a choice looks at each kind once.
struct Kind {
  Unit unit;
  std::vector<std::size_t> members;
  std::size_t num_taken = 0;
  bool is_left() const { return num_taken < members.size(); }
};

// Largest first, by block or by elements.
enum class Preference { kBlock, kElements };

std::vector<Kind> kinds_of(std::span<const Unit> units, Preference preference) {
  std::map<std::pair<std::int64_t, std::int64_t>, Kind> kinds;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    const bool by_block = preference == Preference::kBlock;
    Kind& kind = kinds[by_block ? std::pair(-unit.block, -unit.elements)
                                : std::pair(-unit.elements, -unit.block)];
    kind.unit = unit;
    kind.members.push_back(i);
  }
  std::vector<Kind> list;
  for (auto& [key, kind] : kinds) list.push_back(std::move(kind));
  return list;
}

// One try of a size.
class Attempt {
 public:
  Attempt(std::span<const Kind> kinds, std::size_t num_units, std::int64_t size)
      : size_(size), starts_(num_units) {
    for (const Kind& kind : kinds) (kind.unit.block == 1 ? fillers_ : firm_).push_back(kind);
  }

  // The starts, where all end within `limit`.
  std::optional<std::vector<std::int64_t>> run(std::int64_t limit) {
    while (Kind* next = nearest()) {
      const std::int64_t start = first_start(next->unit, cursor_, size_);
      if (start < 0 || start + next->unit.elements > limit) return std::nullopt;
      fill_until(start);
      take(*next, start);
    }
    fill_until(limit);
    const bool all = std::ranges::none_of(fillers_, &Kind::is_left);
    return all ? std::optional(std::move(starts_)) : std::nullopt;
  }

 private:
  Kind* nearest() {
    Kind* best = nullptr;
    std::int64_t best_start = 0;
    for (Kind& kind : firm_) {
      if (!kind.is_left()) continue;
      const std::int64_t start = first_start(kind.unit, cursor_, size_);
      if (best != nullptr && (start < 0 || start >= best_start)) continue;
      best = &kind, best_start = start;
      if (start == cursor_) break;
    }
    return best;
  }

  void take(Kind& kind, std::int64_t start) {
    starts_[kind.members[kind.num_taken++]] = start;
    cursor_ = start + kind.unit.elements;
  }

  void fill_until(std::int64_t end) {
    for (Kind& kind : fillers_)
      while (kind.is_left() && cursor_ + kind.unit.elements <= end) take(kind, cursor_);
  }

  std::int64_t size_;
  std::int64_t cursor_ = 0;
  std::vector<Kind> firm_, fillers_;
  std::vector<std::int64_t> starts_;
};

// What the size of shards must be a multiple of.
std::int64_t needed_multiple(std::span<const Unit> units, std::int64_t size) {
  std::int64_t multiple = 1;
  for (const Unit& unit : units)
    if (unit.elements > 2 * size) multiple = std::lcm(multiple, unit.block);
  return multiple;
}

}  // namespace

std::int64_t least_size(std::span<const Unit> units, int num_ranks) {
  std::int64_t total = 0;
  std::int64_t size = 1;
  for (const Unit& unit : units) {
    total += unit.elements;
    size = std::max(size, std::min(unit.block, unit.elements));
  }
  size = std::max(size, divide_up(total, num_ranks));
  while (true) {
    // A size between this and the next multiple serves where fewer units span more than two.
    const std::int64_t multiple = needed_multiple(units, size);
    if (size % multiple == 0) return size;
    std::int64_t next = round_up(size, multiple);
    for (const Unit& unit : units)
      if (unit.elements > 2 * size) next = std::min(next, divide_up(unit.elements, 2));
    size = next;
  }
}

Arrangement arrange(std::span<const Unit> units, int num_ranks) {
  Arrangement best = arrange_in_order(units, num_ranks);
  const std::vector<Kind> preferences[] = {kinds_of(units, Preference::kBlock),
                                           kinds_of(units, Preference::kElements)};
  std::int64_t size = least_size(units, num_ranks);
  const std::int64_t step = std::max<std::int64_t>(1, (best.size - size) / kMostTries);
  while (size < best.size) {
    for (const auto& kinds : preferences)
      if (auto starts = Attempt(kinds, units.size(), size).run(size * num_ranks))
        return {size, std::move(*starts)};
    size += divide_up(step, needed_multiple(units, size)) * needed_multiple(units, size);
  }
  return best;
}

}  // namespace ptrain::mesh
