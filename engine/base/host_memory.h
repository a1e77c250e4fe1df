#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ptrain::device {

// Memory of the host in which bytes wait that have no room on the device, all zeros at first;
// beside a GPU it is page-locked, so that copies run at the speed of its bus and beside kernels.
// Each build links the twin of its device. Copies are in no order with kernels: who hands over
// memory that kernels use calls synchronize() before. One copy at a time, from any thread.
class HostMemory {
 public:
  explicit HostMemory(std::int64_t bytes);  // std::bad_alloc where there is not as much
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // Return when the bytes are there. `to` and `from`: of allocate().
  void read(std::int64_t offset, std::span<std::byte> to) const {
    copy(to.data(), data_ + offset, to.size());
  }
  void write(std::int64_t offset, std::span<const std::byte> from) {
    copy(data_ + offset, from.data(), from.size());
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes) const;

  std::byte* data_ = nullptr;
  // Of a device that has streams.
  [[maybe_unused]] void* stream_ = nullptr;
  [[maybe_unused]] int gpu_ = -1;
};

}  // namespace ptrain::device
