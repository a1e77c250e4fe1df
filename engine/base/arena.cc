#include "engine/base/arena.h"

#include <algorithm>

#include "core/base/divide.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"

namespace ptrain {
namespace {

constexpr std::int64_t kAlignment = 64;

// Blocks are shared between sizes that differ little: an eighth of a power of two at most is lost.
std::int64_t capacity_for(std::int64_t bytes) {
  std::int64_t step = kAlignment;
  while (step * 16 < bytes) step *= 2;
  return round_up(std::max<std::int64_t>(bytes, 1), step);
}

auto index_of(program::MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

}  // namespace

Arena::Arena() = default;

Arena::~Arena() {
  for (const auto& [capacity, data] : free_) device::release(data);
  for (const auto& [data, block] : taken_) device::release(data);
}

void* Arena::take(program::MemoryClass memory_class, std::int64_t bytes) {
  const std::int64_t capacity = capacity_for(bytes);
  void* data = nullptr;
  if (const auto kept = free_.find(capacity); kept != free_.end()) {
    data = kept->second;
    free_.erase(kept);
  } else {
    data = device::allocate(capacity);
  }
  taken_.emplace(data, Block{capacity, bytes, memory_class});
  note(memory_class, bytes);
  return data;
}

void Arena::note(program::MemoryClass memory_class, std::int64_t bytes) {
  Bytes& live = live_[index_of(memory_class)];
  live += Bytes{bytes};
  peak_[index_of(memory_class)] = std::max(peak_[index_of(memory_class)], live);
}

void Arena::give(void* data) {
  const auto block = taken_.find(data);
  PT_CHECK(block != taken_.end());
  note(block->second.memory_class, -block->second.bytes);
  free_.emplace(block->second.capacity, data);
  taken_.erase(block);
}

void Arena::count_as(void* data, program::MemoryClass memory_class) {
  const auto block = taken_.find(data);
  PT_CHECK(block != taken_.end());
  note(block->second.memory_class, -block->second.bytes);
  block->second.memory_class = memory_class;
  note(memory_class, block->second.bytes);
}

Arena::PeaksKept::~PeaksKept() {
  for (std::size_t i = 0; i < peak_.size(); ++i)
    arena_.peak_[i] = std::max(peak_[i], arena_.live_[i]);
}

Bytes Arena::live(program::MemoryClass memory_class) const { return live_[index_of(memory_class)]; }
Bytes Arena::peak(program::MemoryClass memory_class) const { return peak_[index_of(memory_class)]; }

}  // namespace ptrain
