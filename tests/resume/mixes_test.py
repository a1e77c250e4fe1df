"""A run that goes from mix to mix of all axes ends where one rank does, and stock PyTorch reads it.

    mixes_test.py BINARY
"""

import signal
import sys
import unittest
import warnings

import torch
import torch.distributed.checkpoint as dcp

from place import Place

BINARY = sys.argv.pop(1)
warnings.filterwarnings("ignore", module="torch.distributed")

EIGHT = "parallel={tp: 2, pp: 2, dp: 2, shard: 1, schedule: 1f1b, micro_batch: 1}"
PIPELINE = "parallel={tp: 1, pp: 4, dp: 2, shard: 1, schedule: zb_h1, micro_batch: 1}"
SHARDS = "parallel={tp: 2, pp: 1, dp: 1, shard: 2, zero: 3}"
ONE = "parallel={tp: 1, pp: 1, dp: 1, shard: 1}"
CLUSTER = "name: test\nnodes: [{name: here, cores: 8, memory_gib: 8}]\n"


def tensors_of(folder):
    """Every tensor of a checkpoint, by stock PyTorch on one process."""
    metadata = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {key: torch.empty(entry.size, dtype=entry.properties.dtype)
             for key, entry in metadata.items() if hasattr(entry, "chunks")}
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return state


class Mixes(unittest.TestCase):
    def setUp(self):
        self.place = Place(BINARY)
        self.addCleanup(self.place.close)
        (self.place.root / "cluster.yaml").write_text(CLUSTER)
        self.place.recipe(short=40, long=20, ranks=1)

    def stopped(self, process, step):
        self.place.wait_for_step(process, "moved", step)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=100), 20, self.place.output.read_text())

    def test_losses_go_on_from_mix_to_mix(self):
        place = self.place
        place.run("whole", ONE)
        process = place.spawn("run", "recipe.yaml", "--directory", "moved", EIGHT,
                              "cluster.ranks_per_node=8")
        self.stopped(process, 5)
        first = place.checkpoints("moved")[-1]
        for mix, ranks, step in ((PIPELINE, 8, 15), (SHARDS, 4, 25)):
            process = place.spawn("resume", "moved", mix, f"cluster.ranks_per_node={ranks}")
            self.stopped(process, step)
        place.ptrain("resume", "moved", ONE, "cluster.ranks_per_node=1")
        whole, moved = place.metrics("whole"), place.metrics("moved")
        self.assertEqual(sorted(whole), sorted(moved))
        self.assertLessEqual({1, 2, 3, 4}, {line["attempt"] for line in moved.values()})
        for step, line in whole.items():
            self.assertAlmostEqual(moved[step]["loss"] / line["loss"], 1, delta=1e-5, msg=str(step))
            self.assertEqual(moved[step]["tokens_total"], line["tokens_total"])
        self.as_one_rank(tensors_of(place.checkpoint("moved", 60)),
                         tensors_of(place.checkpoint("whole", 60)))
        for tensor in tensors_of(first).values():  # of eight ranks: every element is there
            self.assertTrue(torch.isfinite(tensor).all())

    def as_one_rank(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for key, tensor in expected.items():
            if key.endswith("k_proj.bias"):
                continue
            apart = (found[key] - tensor).norm() / tensor.norm().clamp(min=1e-12)
            self.assertLess(apart.item(), 1e-3, key)

    def test_a_mix_saves_what_one_rank_saves(self):
        place = self.place
        short = ("shapes.0.steps=1", "shapes.1.steps=1", "learning_rate.warmup_steps=1")
        place.run("whole", ONE, *short)
        place.run("mixed", EIGHT, "cluster.ranks_per_node=8", *short)
        self.as_one_rank(tensors_of(place.checkpoint("mixed", 1)),
                         tensors_of(place.checkpoint("whole", 1)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
