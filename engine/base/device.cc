// Kernels that are plain functions of this process.
#include "engine/base/device.h"

#include <cstdlib>
#include <new>

#include "core/base/divide.h"
#include "engine/base/engine_error.h"

namespace ptrain::device {
namespace {

constexpr std::int64_t kAlignment = 64;

}  // namespace

bool is_gpu() { return false; }

void open(int gpu) {
  if (gpu < 0) return;
  throw EngineError(ExitCode::kEnvironment,
                    "the plan puts this rank on a GPU, but this engine is built without CUDA",
                    "build ptrain with the preset `cuda`, or plan for a cluster without GPUs");
}

void* allocate(std::int64_t bytes) {
  void* data =
      std::aligned_alloc(kAlignment, static_cast<std::size_t>(round_up(bytes, kAlignment)));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void release(void* data) { std::free(data); }

void synchronize() {}

}  // namespace ptrain::device
