#include "core/schedule/generators/building_block.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>

#include "core/schedule/execute.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

constexpr int kPeriod = 6;

// What a slot may hold, in the order in which a micro-batch passes through a rank. Of a weight
// gradient only the slot is planned; whose it is, follows from the slots.
enum Kind : std::size_t { kFirst, kSecond, kSecondInput, kFirstInput, kWeight, kNumKinds };

bool is_input(Kind kind) { return kind == kSecondInput || kind == kFirstInput; }

// The slots of one rank by kind and micro-batch; each list rises.
using Slots = std::array<std::vector<int>, kNumKinds>;

std::vector<std::optional<Kind>> by_slot(const Slots& slots) {
  int end = 0;
  for (const auto& list : slots)
    if (!list.empty()) end = std::max(end, list.back() + 1);
  std::vector<std::optional<Kind>> kinds(static_cast<std::size_t>(end));
  for (std::size_t kind = 0; kind < kNumKinds; ++kind)
    for (const int slot : slots[kind])
      kinds[static_cast<std::size_t>(slot)] = static_cast<Kind>(kind);
  return kinds;
}

// A W in each free slot as soon as there is an I without one.
Slots with_weights(Slots slots) {
  slots[kWeight].clear();
  const auto kinds = by_slot(slots);
  int pending = 0;
  int slot = 0;
  for (const auto& kind : kinds) {
    if (kind && is_input(*kind)) ++pending;
    if (!kind && pending > 0) {
      slots[kWeight].push_back(slot);
      --pending;
    }
    ++slot;
  }
  for (; pending > 0; --pending) slots[kWeight].push_back(slot++);
  return slots;
}

// The most stashes held; weight gradients that are not planned come as soon as they can.
int peak_of(const Slots& slots) {
  if (slots[kWeight].empty()) return peak_of(with_weights(slots));
  int held = 0;
  int most = 0;
  for (const auto& kind : by_slot(slots)) {
    if (!kind) continue;
    held += (*kind == kFirst || *kind == kSecond ? 1 : 0) - (*kind == kWeight ? 1 : 0);
    most = std::max(most, held);
  }
  return most;
}

// The slots of all ranks, and how they become earlier.
class Plan {
 public:
  Plan(const std::vector<BlockSlots>& first, const Problem& problem) : problem_(problem) {
    for (const BlockSlots& block : first) {
      Slots& slots = ranks_.emplace_back();
      for (std::size_t kind = 0; kind < block.size(); ++kind)
        for (int i = 0; i < problem.num_micro_batches; ++i)
          slots[kind].push_back(block[kind] + kPeriod * i);
    }
  }

  // Once with weight gradients in their slots, which moves the start and the end; once more
  // without them, which moves the end.
  void move_earlier() {
    move_all(true);
    close_gaps();
    for (Slots& slots : ranks_) slots[kWeight].clear();
    move_all(false);
    for (Slots& slots : ranks_) slots = with_weights(slots);
    close_gaps();
    for (Slots& slots : ranks_) slots = with_weights(slots);
  }

  // Weight gradients go in the order of I, those of the second chunk first.
  Schedule lists() const {
    Schedule schedule = empty_schedule(problem_);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      schedule.ranks[rank] = list(static_cast<int>(rank));
    return schedule;
  }

 private:
  struct Item {
    int slot = 0;
    int rank = 0;
    std::size_t kind = 0;
    int micro_batch = 0;
    auto key() const { return std::tuple(slot, rank, kind, micro_batch); }
  };

  std::vector<Cell> list(int rank) const {
    const int stages[] = {rank, 2 * problem_.num_ranks - 1 - rank};
    std::array<int, kNumKinds> next{};
    std::deque<Cell> pending;
    std::vector<Cell> cells;
    for (const auto& kind : by_slot(ranks_[static_cast<std::size_t>(rank)])) {
      if (!kind) continue;
      if (*kind == kWeight) {
        cells.push_back(pending.front());
        pending.pop_front();
        continue;
      }
      const bool second = *kind == kSecond || *kind == kSecondInput;
      Cell cell{.work = is_input(*kind) ? Work::kBackwardInput : Work::kForward,
                .stage = stages[second],
                .micro_batch = next[*kind]++};
      cells.push_back(cell);
      if (!is_input(*kind)) continue;
      cell.work = Work::kBackwardWeight;
      const auto first_chunk = std::ranges::find(pending, stages[0], &Cell::stage);
      pending.insert(second ? first_chunk : pending.end(), cell);
    }
    return cells;
  }

  // Runs the lists with slots as the unit of time: no slot is left in which something could run.
  void close_gaps() {
    const Schedule schedule = lists();
    const auto spans = execute(schedule, Positions(schedule), uniform_timing(schedule, {})).spans;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Slots slots;
      auto span = spans[rank].begin();
      for (const auto& kind : by_slot(ranks_[rank]))
        if (kind) slots[*kind].push_back(static_cast<int>((span++)->start));
      ranks_[rank] = std::move(slots);
    }
  }

  std::vector<Item> items() const {
    std::vector<Item> items;
    for (int rank = 0; rank < problem_.num_ranks; ++rank)
      for (std::size_t kind = 0; kind < kNumKinds; ++kind) {
        int micro_batch = 0;
        for (const int slot : ranks_[static_cast<std::size_t>(rank)][kind])
          items.push_back({slot, rank, kind, micro_batch++});
      }
    std::ranges::sort(items, {}, &Item::key);
    return items;
  }

  int slot_of(int rank, std::size_t kind, int micro_batch) const {
    if (rank < 0 || rank >= problem_.num_ranks || micro_batch < 0) return -1;
    return ranks_[static_cast<std::size_t>(rank)][kind][static_cast<std::size_t>(micro_batch)];
  }

  // The slot after all that the item needs.
  int first_slot(const Item& item) const {
    int last = slot_of(item.rank, item.kind, item.micro_batch - 1);
    if (item.kind == kWeight) {
      const Slots& slots = ranks_[static_cast<std::size_t>(item.rank)];
      std::vector<int> inputs = slots[kSecondInput];
      std::ranges::copy(slots[kFirstInput], std::back_inserter(inputs));
      std::ranges::sort(inputs);
      return std::max(last, inputs[static_cast<std::size_t>(item.micro_batch)]) + 1;
    }
    const bool down = item.kind == kFirst || item.kind == kSecondInput;
    last = std::max(last, slot_of(item.rank + (down ? -1 : 1), item.kind, item.micro_batch));
    if (item.kind != kFirst)
      last = std::max(last, slot_of(item.rank, item.kind - 1, item.micro_batch));
    return last + 1;
  }

  // Every item in turn to the first free slot that keeps the rank within `cap`. The steady part,
  // from the end of the first micro-batch to the start of the last, stays; so does what is before,
  // unless `start_too`.
  void move_all(bool start_too) {
    if (start_too)
      for (Slots& slots : ranks_) slots = with_weights(slots);
    int cap = 0;
    for (const Slots& slots : ranks_) cap = std::max(cap, peak_of(slots));
    std::vector<std::vector<bool>> taken;
    for (const Slots& slots : ranks_) taken.emplace_back(by_slot(slots).size(), false);
    enum { kStart, kSteady, kEnd } phase = kStart;
    for (const Item& item : items()) {
      if (phase == kStart && item.kind == kFirstInput && item.rank == 0) phase = kSteady;
      const bool last_start =
          item.kind == kFirst && item.micro_batch == problem_.num_micro_batches - 1;
      const bool stays = phase == kSteady || (phase == kStart && !start_too);
      if (phase == kSteady && last_start) phase = kEnd;
      auto& rank_taken = taken[static_cast<std::size_t>(item.rank)];
      const int slot = stays ? item.slot : move(item, cap, rank_taken);
      rank_taken[static_cast<std::size_t>(slot)] = true;
    }
  }

  // Where the item went.
  int move(const Item& item, int cap, const std::vector<bool>& taken) {
    Slots& slots = ranks_[static_cast<std::size_t>(item.rank)];
    int& slot = slots[item.kind][static_cast<std::size_t>(item.micro_batch)];
    for (int earlier = first_slot(item); earlier < item.slot; ++earlier) {
      if (taken[static_cast<std::size_t>(earlier)]) continue;
      slot = earlier;
      if (peak_of(slots) <= cap) return slot;
    }
    return slot = item.slot;
  }

  const Problem& problem_;
  std::vector<Slots> ranks_;
};

}  // namespace

Schedule repeat_block(const std::vector<BlockSlots>& first, const Problem& problem) {
  Plan plan(first, problem);
  plan.move_earlier();
  return plan.lists();
}

}  // namespace ptrain::schedule
