#include "launcher/plan/memory.h"

#include "core/program/temporary.h"

namespace ptrain::plan {

namespace {

// Resident size of a rank with libtorch's CPU half and MPI beside all that is counted: measured 130
// to 155 MiB on models from 0.1 to 500 MiB.
constexpr std::int64_t kRuntimeBytes = 145LL * 1024 * 1024;

// Of a token of the step, all of whose rows are packed before it begins: it, its target and its
// position, 4 bytes each.
constexpr std::int64_t kRowBytes = 12;

// Of experts that drop nothing. Assumed, not measured: a balance loss or bias keeps loads near
// their mean once training has settled, and a rank's several experts are more even than one, but a
// single micro-batch is less even than a step.
constexpr double kExpertLoad = 1.5;

}  // namespace

std::int64_t runtime_bytes(const mesh::Layout& layout, std::int64_t sequence) {
  const std::int64_t tokens = layout.num_micro_batches * layout.micro_batch * sequence;
  const std::int64_t own = layout.cp > 1 ? tokens / layout.cp : 0;  // a copy beside the whole rows
  return kRuntimeBytes + kRowBytes * (tokens + own);
}

void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context) {
  using program::MemoryClass;
  bytes[static_cast<std::size_t>(MemoryClass::kTemporary)] += program::temporary_bytes(context);
  bytes[static_cast<std::size_t>(MemoryClass::kRuntime)] +=
      Bytes{runtime_bytes(context.layout, context.sequence)};
}

double expert_load(const model::Architecture& architecture) {
  const model::MoeSpec& moe = architecture.decoder.moe;
  if (moe.num_experts == 0) return 0;
  return moe.capacity_factor > 0 ? moe.capacity_factor : kExpertLoad;
}

}  // namespace ptrain::plan
