// Linked into test programs whose kernels run on a GPU: all that they allocate is memory which
// kernels reach, and without a GPU every test is skipped and says so. CUDA_LAUNCH_BLOCKING=1 makes
// kernels end before the tests look.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "engine/base/device.h"

namespace {

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

class OnGpu : public testing::Environment {
 public:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU: these kernels are compiled, but have nowhere to run";
    ptrain::device::open(0);
  }
};

const auto* const registered = testing::AddGlobalTestEnvironment(new OnGpu);

constexpr std::size_t kHeader = 64;   // before each piece of memory: whether it is managed
thread_local bool is_inside = false;  // CUDA allocates too

bool wants_managed() {
  if (is_inside) return false;
  is_inside = true;
  static const bool answer = has_gpu();
  is_inside = false;
  return answer;
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const bool managed = wants_managed();
  if (managed) {
    is_inside = true;
    if (cudaMallocManaged(&memory, bytes + kHeader) != cudaSuccess) memory = nullptr;
    is_inside = false;
  } else {
    memory = std::aligned_alloc(kHeader, (bytes + 2 * kHeader - 1) / kHeader * kHeader);
  }
  if (memory == nullptr) throw std::bad_alloc();
  *static_cast<bool*>(memory) = managed;
  return static_cast<char*>(memory) + kHeader;
}

void release(void* data) noexcept {
  if (data == nullptr) return;
  void* memory = static_cast<char*>(data) - kHeader;
  if (*static_cast<bool*>(memory)) {
    cudaFree(memory);
  } else {
    std::free(memory);
  }
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* data) noexcept { release(data); }
void operator delete[](void* data) noexcept { release(data); }
void operator delete(void* data, std::size_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t) noexcept { release(data); }
