#pragma once

// Part of launch.h, for nvcc.

#include <cuda_runtime.h>

#include "engine/base/cuda_check.h"
#include "engine/base/device.h"

#define PT_DEVICE __device__

namespace ptrain::kernels {

class Block {
 public:
  PT_DEVICE std::int64_t index() const { return blockIdx.x; }

  template <class F>
  PT_DEVICE void each(std::int64_t n, const F& f) const {
    for (std::int64_t i = threadIdx.x; i < n; i += kThreads) f(i);
    __syncthreads();
  }

  // Every thread folds its own terms, then halves of the threads meet: an order that depends on n
  // only.
  template <class T, class Fold, class Term>
  PT_DEVICE T fold(std::int64_t n, T start, const Fold& fold, const Term& term) const {
    __shared__ T lanes[kThreads];
    const int thread = static_cast<int>(threadIdx.x);
    T own = start;
    for (std::int64_t i = thread; i < n; i += kThreads) own = fold(own, term(i));
    lanes[thread] = own;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (thread < half) lanes[thread] = fold(lanes[thread], lanes[thread + half]);
      __syncthreads();
    }
    const T result = lanes[0];
    __syncthreads();  // before the next fold writes there
    return result;
  }

  template <class T>
  PT_DEVICE T* shared() const {
    extern __shared__ __align__(16) unsigned char block_memory[];
    return reinterpret_cast<T*>(block_memory);
  }
};

template <class Body>
__global__ void __launch_bounds__(kThreads) run_block(const Body body) {
  body(Block());
}

template <class Body>
void launch(std::int64_t num_blocks, std::int64_t shared_bytes, const Body& body) {
  constexpr std::int64_t kWithoutAsking = 48 * 1024;
  if (num_blocks == 0) return;
  const auto bytes = static_cast<int>(shared_bytes);
  if (shared_bytes > kWithoutAsking)
    device::check(
        cudaFuncSetAttribute(run_block<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "cudaFuncSetAttribute");
  run_block<<<static_cast<unsigned>(num_blocks), kThreads, static_cast<std::size_t>(bytes)>>>(body);
  device::check(cudaGetLastError(), "a kernel launch");
}

// Taken and given back in the order of the stream, so that nobody waits.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n) {
    if (n == 0) return;
    void* memory = nullptr;
    device::check(cudaMallocAsync(&memory, static_cast<std::size_t>(n) * sizeof(T), nullptr),
                  "cudaMallocAsync");
    data_ = static_cast<T*>(memory);
  }
  ~Scratch() {
    if (data_ != nullptr) cudaFreeAsync(data_, nullptr);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

// The runtime has read pageable memory when the copy returns.
template <class T>
class Uploaded {
 public:
  explicit Uploaded(std::span<const T> values)
      : scratch_(static_cast<std::int64_t>(values.size())) {
    if (values.empty()) return;
    device::check(cudaMemcpyAsync(scratch_.data(), values.data(), values.size_bytes(),
                                  cudaMemcpyHostToDevice, nullptr),
                  "cudaMemcpyAsync");
  }
  const T* data() const { return scratch_.data(); }

 private:
  Scratch<T> scratch_;
};

inline void clear(const Tensor& tensor) {
  const auto pitch = static_cast<std::size_t>(tensor.stride * size_of(tensor.dtype));
  const auto width = static_cast<std::size_t>(tensor.cols * size_of(tensor.dtype));
  const auto rows = static_cast<std::size_t>(tensor.rows);
  if (rows <= 1 || pitch == width)
    return device::check(cudaMemsetAsync(tensor.data, 0, rows * width, nullptr), "cudaMemsetAsync");
  device::check(cudaMemset2DAsync(tensor.data, pitch, 0, width, rows, nullptr),
                "cudaMemset2DAsync");
}

template <class T>
T fetch(const T* value) {
  T result;
  device::check(cudaMemcpyAsync(&result, value, sizeof(T), cudaMemcpyDeviceToHost, nullptr),
                "cudaMemcpyAsync");
  device::synchronize();
  return result;
}

}  // namespace ptrain::kernels
