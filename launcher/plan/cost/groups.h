#pragma once

#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

// Innermost in the order of ranks first.
// kShard: shard x cp, over which parameters are sharded.
// kRows: tp x cp, the ranks that hold tokens of the same rows. kVocabulary: pp x tp, those that
// share a spread embedding or head.
// kExperts: ep x etp; kExpertShard and kExpertDp: eshard and edp (mesh/layout.h).
enum class MeshAxis {
  kTp,
  kUlysses,
  kRing,
  kShard,
  kDp,
  kPp,
  kWorld,
  kRows,
  kVocabulary,
  kExperts,
  kExpertShard,
  kExpertDp
};

// Levels of the network, innermost first.
enum class Level { kNode, kNetwork };

// The ranks that differ along one axis only, and the outermost level that any such group needs.
struct Group {
  int size = 1;
  Level level = Level::kNode;
  bool by_messages = false;  // in a layout with a shared window too
  bool operator==(const Group&) const = default;
};
Group group_of(const mesh::Layout& layout, const Placement& placement, MeshAxis axis);

enum class Transfer { kGather, kReduce };

// Every rank of the group receives `bytes` in all, in equal parts from all others: the slowest
// level that it needs.
double transfer_seconds(double bytes, const Group& group, Transfer transfer,
                        const CostContext& context);

}  // namespace ptrain::plan
