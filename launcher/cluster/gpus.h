#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "launcher/base/subprocess.h"

namespace ptrain::cluster {

struct Gpu {
  int number = 0;      // as nvidia-smi counts them: in the order of the bus
  std::string bus_id;  // 0000:17:00.0
  std::string uuid;    // GPU-...
  std::int64_t memory_bytes = 0;
  bool operator==(const Gpu&) const = default;
};

// Of what nvidia-smi prints for this query as csv,noheader,nounits: a line a GPU, memory in MiB.
inline constexpr std::string_view kGpusQuery = "index,pci.bus_id,uuid,memory.total";
std::vector<Gpu> gpus_from_nvidia_smi(std::string_view text);

// Those that a process sees with this value of CUDA_VISIBLE_DEVICES (null: not set), in the order
// in which it counts them: numbers or beginnings of UUIDs by commas, up to the first that names
// none.
std::vector<Gpu> visible_gpus(const std::vector<Gpu>& all, const char* visible);

// What the nvidia-smi of PATH tells of this machine; nothing where there is no such program. Asked
// once in a process.
struct GpuSurvey {
  std::vector<Gpu> gpus;  // all that it lists
  std::string complaint;  // what it says beside them, or how it fails, in its words; empty: nothing
  bool asked = false;     // there is such a program
};
GpuSurvey survey_gpus();
// Of how it ended: what it wrote may be no list, or a list with more lines than GPUs.
GpuSurvey survey_of(const Result<base::Finished>& answer);

// Those of them that this process sees.
std::vector<Gpu> gpus_here();

}  // namespace ptrain::cluster
