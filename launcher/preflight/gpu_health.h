#pragma once

#include <string>
#include <string_view>

#include "launcher/preflight/node_report.h"

namespace ptrain::preflight {

// Fills in what NVIDIA's tool tells of the GPUs of this machine: how many there are, whether they
// are healthy, and whether some are missed. A tool that hangs is killed: GPUs that are lost do that
// to it. Takes 20 s at the most, a second where all is well.
void look_at_gpus(NodeReport& report);

// What is wrong with GPUs of which the tool wrote this for `kGpuQuery`; empty: nothing.
inline constexpr std::string_view kGpuQuery =
    "index,ecc.errors.uncorrected.volatile.total,retired_pages.pending";
std::string gpu_error_in(std::string_view lines);

// Who knows of how many GPUs of a machine.
struct GpuCounts {
  bool has_tool = true;  // there is an nvidia-smi
  int listed = 0;        // by it
  int of_job = 0;        // that Slurm gives the job there
  int on_bus = 0;        // with or without a driver
};
// What speaks for more than are listed; empty: nothing.
std::string missing_gpus(const GpuCounts& counts);

}  // namespace ptrain::preflight
