// Kernels on one GPU, in order on its default stream. Tensors lie in managed memory that prefers
// the GPU: pages move to the host only when host code touches them, which it does rarely.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <limits>
#include <new>

#include "engine/base/cuda_check.h"
#include "engine/base/device.h"

namespace ptrain::device {
namespace {

cudaMemLocation this_gpu() {
  cudaMemLocation location{};
  location.type = cudaMemLocationTypeDevice;
  check(cudaGetDevice(&location.id), "cudaGetDevice");
  return location;
}

// The runtime would page what does not fit to and fro rather than refuse it.
void check_room(std::size_t bytes) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (bytes > free) throw std::bad_alloc();
}

// Scratch that kernels give back stays with this process.
void keep_scratch(int gpu) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, gpu), "cudaDeviceGetDefaultMemPool");
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most),
        "cudaMemPoolSetAttribute");
}

}  // namespace

bool is_gpu() { return true; }

void open(int gpu) {
  if (gpu < 0)
    throw EngineError(ExitCode::kEnvironment,
                      "the plan puts this rank on no GPU, but this engine runs on GPUs only",
                      "plan again: ptrain opens the engine that suits the plan");
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("the plan puts this rank on GPU {}, but no GPU is visible here "
                                  "({})",
                                  gpu, cudaGetErrorString(status)),
                      "check nvidia-smi and CUDA_VISIBLE_DEVICES, or plan for a cluster without "
                      "GPUs");
  if (gpu >= count)
    throw EngineError(
        ExitCode::kEnvironment,
        fmt::format("the plan puts this rank on GPU {}, but {} are visible here", gpu, count),
        "give the job as many GPUs a node as ranks, or plan again");
  check(cudaSetDevice(gpu), "cudaSetDevice");
  int shares = 0;
  check(cudaDeviceGetAttribute(&shares, cudaDevAttrConcurrentManagedAccess, gpu),
        "cudaDeviceGetAttribute");
  if (shares == 0)
    throw EngineError(ExitCode::kEnvironment,
                      fmt::format("GPU {} cannot share memory with the host while it works", gpu),
                      "use a GPU of Pascal or newer under Linux");
  keep_scratch(gpu);
}

void* allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  check_room(size);
  void* data = nullptr;
  const cudaError_t status = cudaMallocManaged(&data, size);
  if (status == cudaErrorMemoryAllocation) throw std::bad_alloc();
  check(status, "cudaMallocManaged");
  check(cudaMemAdvise(data, size, cudaMemAdviseSetPreferredLocation, this_gpu()), "cudaMemAdvise");
  check(cudaMemPrefetchAsync(data, size, this_gpu(), 0, nullptr), "cudaMemPrefetchAsync");
  synchronize();  // from here on the memory counts as used
  return data;
}

// Kernels may still use it. At the end of a process both may fail.
void release(void* data) {
  cudaStreamSynchronize(nullptr);
  cudaFree(data);
}

void synchronize() { check(cudaStreamSynchronize(nullptr), "a kernel"); }

}  // namespace ptrain::device
