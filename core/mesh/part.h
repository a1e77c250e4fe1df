#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// The model as one rank holds it: the layers of its stages, and of each parameter the part that its
// tp, ep and etp give it; sizes in `config` and `decoder` are those of the part. The parts of all
// ranks cover each parameter, and the elements that `counts` exactly once (dp, shard and cp hold
// copies or shards of one part).
//   by rows (heads, inner width, vocabulary)   embedding, head, queries, keys, values, gate, up
//   by columns                                 output, down
//   whole on each tp rank, gradients to add    norms, positions, routers, biases behind row splits
//   whole experts by ep, their width by etp    experts
// Where there are fewer heads of keys and values than tp ranks, neighbours hold the same one. Parts
// of one fused matrix of queries, keys and values are three parameters of its name. With a tied
// head that is not spread the last stage holds all of group 0 too. Of an embedding or a head that
// is spread each pipeline rank holds rows of the matrix, the stage that has its stream what else
// belongs to it; where both are spread and tied, these are the same rows. Without tp, pp, ep and
// etp it is the whole. Errors (kUsage): a degree that does not divide what it splits, with the
// nearest that does; an optimizer that must see what is split.
Result<model::Architecture> part_of(const model::Architecture& whole, const Layout& layout,
                                    int rank);
// Those of several ranks, in their order: a large model is described once for all of them.
Result<std::vector<model::Architecture>> parts_of(const model::Architecture& whole,
                                                  const Layout& layout, std::span<const int> ranks);

}  // namespace ptrain::mesh
