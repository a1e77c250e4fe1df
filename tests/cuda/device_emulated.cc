// A GPU that is not there: the twin of engine/base/device_cuda.cc under the emulated kernels.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <utility>

#include "core/base/divide.h"
#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/emulated_stream.h"

namespace ptrain::device {
namespace {

// Of the process, as a GPU's default stream is.
bool is_open = false;
std::deque<std::function<void()>> stream;

}  // namespace

void enqueue(std::function<void()> work) {
  if (is_open) return stream.push_back(std::move(work));
  work();
}

bool is_gpu() { return true; }

void open(int gpu) {
  PT_CHECK(gpu >= 0);
  is_open = true;
}

void* allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(round_up(bytes, 64));
  void* data = std::aligned_alloc(64, size);
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, 0xff, size);
  return data;
}

void release(void* data) {
  synchronize();
  std::free(data);
}

void synchronize() {
  while (!stream.empty()) std::exchange(stream.front(), nullptr)(), stream.pop_front();
}

}  // namespace ptrain::device
