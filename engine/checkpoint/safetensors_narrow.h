#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptrain::checkpoint {

// The numbers in which a model may be exported.
struct ExportDType {
  std::string name;         // fp32, bf16, fp16: as the command line has it
  std::string safetensors;  // F32 ...
  std::string torch;        // float32 ...
};
// EngineError (kUsage): no such name.
const ExportDType& export_dtype(const std::string& name);

// Rounds to nearest, ties to even, as PyTorch does; `out` has room for all. fp32 is a copy. False:
// a finite value is too large for fp16.
bool narrow(std::span<const float> values, const ExportDType& dtype, std::byte* out);

}  // namespace ptrain::checkpoint
