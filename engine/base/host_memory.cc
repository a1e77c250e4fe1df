// Where kernels are plain functions of this process: its memory is the device's too.
#include "engine/base/host_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ptrain::device {

HostMemory::HostMemory(std::int64_t bytes)
    : data_(static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(bytes), 1))) {
  if (data_ == nullptr) throw std::bad_alloc();
}

HostMemory::~HostMemory() { std::free(data_); }

void HostMemory::copy(void* to, const void* from, std::size_t bytes) const {
  std::memcpy(to, from, bytes);
}

}  // namespace ptrain::device
