#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dcp/metadata.h"
#include "core/run/manifest.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/file_plan.h"
#include "engine/checkpoint/item.h"
#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// Writes `folder` (checkpoints/step-N) as a PyTorch DCP checkpoint: into .tmp-*, fsync, checksums
// in ptrain.json, rename. Collective over `world`. Ranks whose data others hold too (replicas) pass
// no tensors. `items_of` is called on the first rank, for each of the others. Throws EngineError
// (kUnusable, same on all ranks) when it cannot be written: nothing is published and older
// checkpoints are untouched.
void save(const std::string& folder, const Items& items, comm::Communicator& world,
          const ItemsOf& items_of = {});

// When the bytes of a checkpoint are compared with their checksums: all of them when it is opened,
// once, each rank a share; or those that are loaded, while they are. That is twice as fast where
// ranks read what they wrote; where they read parts of it, all is checked then.
enum class Check { kAtOnce, kWhileLoading };

// Damage that was found while loading, the same on all ranks.
class Damaged : public EngineError {
 public:
  using EngineError::EngineError;
};

// Any DCP folder, whatever layout wrote it, open for reading on every rank: its metadata read, its
// sizes right.
class Source {
 public:
  // Collective over `world`, which must live longer. Damage: an EngineError (kUnusable), the same
  // on all ranks, that lists it all.
  Source(std::string folder, comm::Communicator& world, Check check = Check::kAtOnce);

  const std::string& folder() const { return folder_; }
  const dcp::Metadata& metadata() const { return metadata_; }

  // Fills the tensors of `items` and returns the values asked for by key. Collective over the
  // world. Missing keys or other shapes: one EngineError (kUnusable) that lists them all. Damaged:
  // with Check::kWhileLoading, when bytes cannot be read or are not what was written.
  std::vector<ValueItem> load(const Items& items) const;

 private:
  std::vector<ValueItem> read(const Items& items) const;

  std::string folder_;
  comm::Communicator* world_;
  Check check_;
  run::Manifest manifest_;
  dcp::Metadata metadata_;
};

// The newest checkpoint under `checkpoints` that is good, and why each newer one is not. No source:
// there are no checkpoints at all. EngineError (kUnusable): there are, and none is good. Collective
// over the world.
struct Newest {
  std::optional<Source> source;
  std::vector<std::string> damaged;
};
Newest open_newest(const std::string& checkpoints, comm::Communicator& world,
                   Check check = Check::kAtOnce);

// Removes all but the newest `keep` good checkpoints, never the only good one, and leftovers of
// broken saves. Returns what cannot be removed, with the reason; all else is.
std::vector<std::string> prune(const std::string& checkpoints, int keep);

}  // namespace ptrain::checkpoint
