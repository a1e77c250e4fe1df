#pragma once

#include <string>
#include <string_view>

namespace ptrain::preflight {

// What NVIDIA's tool finds wrong with the GPUs of this machine, in words; empty: nothing, or the
// tool is not there. One that hangs is killed: GPUs that are lost do that to it.
std::string gpu_complaint();

// The same of what the tool wrote for `kGpuQuery`.
inline constexpr std::string_view kGpuQuery =
    "index,ecc.errors.uncorrected.volatile.total,retired_pages.pending";
std::string gpu_complaint_in(std::string_view lines);

}  // namespace ptrain::preflight
