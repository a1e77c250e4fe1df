#pragma once

#include <cstdint>
#include <map>

#include "core/program/memory.h"
#include "engine/base/tensor.h"

namespace ptrain {

// All large memory of one rank. It counts the bytes that live in each class at every take and give,
// and knows nothing of programs. Freed blocks are kept and used again, so a steady step asks the
// system for nothing. One thread.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // 64-byte aligned, not cleared. `bytes` are counted as asked for.
  void* take(program::MemoryClass memory_class, std::int64_t bytes);
  void give(void* data);
  // Counts what was taken under another class from here on.
  void count_as(void* data, program::MemoryClass memory_class);
  // Counts bytes that somebody else holds for this rank (or, below 0, holds no more).
  void note(program::MemoryClass memory_class, std::int64_t bytes);

  Bytes live(program::MemoryClass memory_class) const;
  Bytes peak(program::MemoryClass memory_class) const;

  // While one lives, peaks stand still: for work beside training, which no plan's bytes are of.
  // They rise only to what still lives at its end.
  class PeaksKept {
   public:
    explicit PeaksKept(Arena& arena) : arena_(arena), peak_(arena.peak_) {}
    ~PeaksKept();
    PeaksKept(const PeaksKept&) = delete;
    PeaksKept& operator=(const PeaksKept&) = delete;

   private:
    Arena& arena_;
    const program::BytesByClass peak_;
  };

 private:
  struct Block {
    std::int64_t capacity;
    std::int64_t bytes;
    program::MemoryClass memory_class;
  };
  std::map<void*, Block> taken_;
  std::multimap<std::int64_t, void*> free_;
  program::BytesByClass live_{};
  program::BytesByClass peak_{};
};

// A piece of the arena, given back at the end of its scope.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Arena& arena, program::MemoryClass memory_class, std::int64_t bytes)
      : arena_(&arena), data_(arena.take(memory_class, bytes)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) arena_->give(data_);
  }
  void* data() const { return data_; }
  void count_as(program::MemoryClass memory_class) {
    if (data_ != nullptr) arena_->count_as(data_, memory_class);
  }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(data_, other.data_);
  }
  Arena* arena_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace ptrain
