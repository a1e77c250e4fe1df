#include <cuda_runtime.h>

#include <cstring>
#include <new>

#include "engine/base/cuda_check.h"
#include "engine/base/host_memory.h"

namespace ptrain::device {

// A stream that does not wait for the default one, on which kernels run.
HostMemory::HostMemory(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaGetDevice(&gpu_), "cudaGetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = stream;
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, size, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    cudaStreamDestroy(stream);
    throw std::bad_alloc();
  }
  check(status, "cudaHostAlloc");
  data_ = static_cast<std::byte*>(data);
  std::memset(data_, 0, size);
}

// At the end of a process both may fail.
HostMemory::~HostMemory() {
  cudaFreeHost(data_);
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

// A thread begins on the first GPU, which may be another rank's.
void HostMemory::copy(void* to, const void* from, std::size_t bytes) const {
  const auto stream = static_cast<cudaStream_t>(stream_);
  check(cudaSetDevice(gpu_), "cudaSetDevice");
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "a copy between GPU and host");
}

}  // namespace ptrain::device
