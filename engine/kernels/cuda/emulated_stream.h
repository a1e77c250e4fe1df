#pragma once

#include <functional>

namespace ptrain::device {

// The stream of a GPU that tests emulate (tests/cuda/device_emulated.cc). Once the device is open,
// work waits there until device::synchronize(): host code that looks too early sees what a GPU
// would show it in the worst case.
void enqueue(std::function<void()> work);

}  // namespace ptrain::device
