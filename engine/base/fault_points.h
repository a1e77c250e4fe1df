#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ptrain::fault {

// Every point, PHASE.PLACE[.OPERATION]. The kill test ends runs at them; tests/kill/list_faults
// prints them. Only constant expressions use this list, so its texts are in no shipped object.
// clang-format off
inline constexpr auto kPointNames = std::to_array<std::string_view>({
    "start.entry", "start.identify", "start.identified", "start.control.connect",
    "start.control.hello", "start.mpi", "start.mpi.ready", "start.plan.read", "start.plan.ready",
    "start.checkpoint.find", "start.checkpoint.found", "start.progress.ready",
    "start.load.manifest", "start.load.metadata", "start.load.sizes", "start.load.content",
    "start.load.tensors", "start.load.tensor", "start.load.value", "start.load.ready",
    "start.data.sources", "start.data.cache", "start.data.lock", "start.data.locked",
    "start.data.hash", "start.data.document", "start.data.bin.create", "start.data.bin.write",
    "start.data.bin.sync", "start.data.bin.rename", "start.data.idx.create", "start.data.idx.write",
    "start.data.idx.sync", "start.data.idx.rename", "start.data.known.create",
    "start.data.known.write", "start.data.known.sync", "start.data.known.rename",
    "start.data.describe", "start.data.lengths.create", "start.data.lengths.write",
    "start.data.lengths.sync", "start.data.lengths.rename", "start.data.reopen",
    "start.data.broadcast", "start.data.open_train", "start.data.open_validation",
    "start.shape.compile", "start.shape.check",
    "start.shape.compile_evaluation", "start.shape.groups", "start.shape.executor",
    "start.offload.create", "start.offload.reserve", "start.loader",
    "start.initialise", "start.restore", "start.restored", "start.metrics.cut",
    "start.metrics.open", "start.reported",
    "train.step", "train.rows", "train.program", "train.computed", "train.reported", "train.decide",
    "train.decided", "train.forward.embedding.begin", "train.forward.embedding.end",
    "train.forward.block.begin", "train.forward.block.end", "train.forward.head.begin",
    "train.forward.head.end", "train.recompute.block.begin", "train.recompute.block.end",
    "train.backward.head.begin", "train.backward.head.end", "train.backward.block.begin",
    "train.backward.block.end", "train.backward.embedding.begin", "train.backward.embedding.end",
    "train.unshard.begin", "train.unshard.end", "train.reshard.begin", "train.reshard.end",
    "train.reduce_grad.begin", "train.reduce_grad.end", "train.grad_norm.begin",
    "train.grad_norm.end", "train.optimizer.begin", "train.optimizer.end", "train.fetch.begin",
    "train.fetch.read", "train.fetch.end", "train.offload.begin", "train.offload.write",
    "train.offload.end", "train.gather.start",
    "train.reduce.scatter", "train.reduce.replicas", "train.reduce.take",
    "train.norm.world", "train.optimizer.update", "train.metrics.write", "train.metrics.written",
    "train.control.step", "train.validation", "train.validation.rows", "train.validation.loss",
    "train.validation.end", "train.sample",
    "save.begin", "save.position", "save.items", "save.values", "save.copy", "save.copied",
    "save.turn", "save.turn.end", "save.agree", "save.folder.remove",
    "save.folder.create", "save.folder.protect", "save.file.create", "save.file.write",
    "save.file.sync", "save.file.close", "save.value", "save.tensor", "save.tensor.data",
    "save.tensor.end", "save.rank.done", "save.reports", "save.merge", "save.metadata.create",
    "save.metadata.write", "save.metadata.sync", "save.metadata.close", "save.manifest.create",
    "save.manifest.write", "save.manifest.sync", "save.manifest.close",
    "publish.folder_sync", "publish.rename", "publish.renamed", "publish.parent_synced",
    "publish.prune", "publish.leftovers", "publish.verify", "publish.remove.rename",
    "publish.remove.delete", "publish.removed", "publish.event", "publish.done",
    "next.report", "next.close", "next.closed", "next.goodbye", "next.world_close", "next.leave",
    "next.left",
});
// clang-format on

consteval std::size_t point_index(std::string_view name) {
  for (std::size_t i = 0; i < kPointNames.size(); ++i)
    if (kPointNames[i] == name) return i;
  throw "this point is not listed in kPointNames";
}

}  // namespace ptrain::fault
