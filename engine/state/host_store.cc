#include <fmt/format.h>

#include <new>

#include "engine/base/engine_error.h"
#include "engine/base/host_memory.h"
#include "engine/state/offload_store.h"

namespace ptrain::state {
namespace {

class HostStore final : public OffloadStore {
 public:
  explicit HostStore(std::int64_t bytes) : memory_(bytes) {}

  void read(std::int64_t offset, std::span<std::byte> to) override { memory_.read(offset, to); }
  void write(std::int64_t offset, std::span<const std::byte> from) override {
    memory_.write(offset, from);
  }

 private:
  device::HostMemory memory_;
};

}  // namespace

std::unique_ptr<OffloadStore> make_host_store(std::int64_t bytes) {
  try {
    return std::make_unique<HostStore>(bytes);
  } catch (const std::bad_alloc&) {
    throw EngineError(
        ExitCode::kEnvironment,
        fmt::format("cannot lock {} bytes of host memory for the optimizer state of this rank",
                    bytes),
        "leave the node's memory to this run, put fewer ranks on a node, or set "
        "parallel.offload: none");
  }
}

}  // namespace ptrain::state
