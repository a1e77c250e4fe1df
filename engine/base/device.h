#pragma once

#include <cstdint>

namespace ptrain::device {

// What the kernels of this build run on: the processor (device.cc), or one GPU (device_cuda.cc).
// Each engine module links one of the two.
bool is_gpu();

// Makes this process ready for kernels on the GPU of that number on this node; -1: on the
// processor. EngineError (kEnvironment): the plan asks for what this build or machine has not.
void open(int gpu);

// Memory for tensors, which kernels and host code both reach: 64-byte aligned, not cleared.
// std::bad_alloc where there is not as much.
void* allocate(std::int64_t bytes);
void release(void* data);

// Until every kernel that was started has ended. Kernels may run behind the host's back: host code
// calls this before it reads what they wrote or changes what they read. Kernels that return numbers
// have waited themselves.
void synchronize();

}  // namespace ptrain::device
