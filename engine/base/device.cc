// Kernels that are plain functions of this process.
#include "engine/base/device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "core/base/divide.h"
#include "engine/base/engine_error.h"

namespace ptrain::device {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kHugePage = 2 << 20;  // of x86-64 and of arm64 with pages of 4 KiB

}  // namespace

bool is_gpu() { return false; }

void open(int gpu) {
  if (gpu < 0) return;
  throw EngineError(ExitCode::kEnvironment,
                    "the plan puts this rank on a GPU, but this engine is built without CUDA",
                    "build ptrain with the preset `cuda`, or plan for a cluster without GPUs");
}

// Kernels that stream through large tensors miss the TLB less with huge pages. Asked for on whole
// ones only, so that no more becomes resident; a kernel that has none to give changes nothing.
void* allocate(std::int64_t bytes) {
  const std::int64_t whole_pages = bytes - bytes % kHugePage;
  const std::int64_t alignment = whole_pages > 0 ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(static_cast<std::size_t>(alignment),
                                  static_cast<std::size_t>(round_up(bytes, alignment)));
  if (data == nullptr) throw std::bad_alloc();
  if (whole_pages > 0) madvise(data, static_cast<std::size_t>(whole_pages), MADV_HUGEPAGE);
  return data;
}

void release(void* data) { std::free(data); }

void synchronize() {}

}  // namespace ptrain::device
