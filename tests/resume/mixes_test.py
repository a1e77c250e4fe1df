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
# Megatron-Core's example of folding, and the mix of PithTrain.
FOLDED = ("parallel={tp: 2, cp: {ring: 2, ulysses: 1}, dp: 2, shard: 1, pp: 1, ep: 4, etp: 1, "
          "micro_batch: 1}")
PITHTRAIN = ("parallel={tp: 1, cp: {ring: 2, ulysses: 1}, dp: 1, shard: 4, zero: 3, pp: 2, "
             "virtual: 2, schedule: dualpipe_v, ep: 2, etp: 1, micro_batch: 1}")
EIGHT_OF_EXPERTS = EIGHT.replace("}", ", ep: 2, etp: 1}")
SLICED = "parallel={tp: 1, cp: {ring: 1, ulysses: 1}, dp: 1, shard: 4, zero: 2, pp: 1, ep: 2, etp: 2}"
EXPERTS = """\
version: 1
name: experts
seed: 3
model: {family: qwen3_moe, hidden_size: 24, intermediate_size: 40, moe_intermediate_size: 12,
        num_hidden_layers: 3, num_attention_heads: 2, num_key_value_heads: 1, num_experts: 8,
        num_experts_per_tok: 2, mlp_only_layers: "0"}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], packing: {window: 64}, cache: cache}
shapes: [{name: only, sequence: 24, global_batch_tokens: 384, steps: 1}]
learning_rate: {peak: 3e-3, warmup_steps: 5, decay: constant}
precision: fp64
parallel: auto
checkpoint: {every_steps: 1000, keep: 9}
cluster: {file: cluster.yaml, ranks_per_node: 1}
"""
STEPS = 10  # of each mix
CLUSTER = "name: test\nnodes: [{name: here, cores: 16, memory_gib: 8}]\n"


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
        self.place.recipe(short=200, long=20, ranks=1)

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
        of_eight = tensors_of(place.checkpoints("moved")[-1])  # before newer ones replace it
        for mix, ranks in ((PIPELINE, 8), (SHARDS, 4)):
            step = max(place.metrics("moved")) + 10  # how far it got before depends on the machine
            process = place.spawn("resume", "moved", mix, f"cluster.ranks_per_node={ranks}")
            self.stopped(process, step)
        place.ptrain("resume", "moved", ONE, "cluster.ranks_per_node=1")
        whole, moved = place.metrics("whole"), place.metrics("moved")
        self.assertEqual(sorted(whole), sorted(moved))
        self.assertLessEqual({1, 2, 3, 4}, {line["attempt"] for line in moved.values()})
        for step, line in whole.items():
            self.assertAlmostEqual(moved[step]["loss"] / line["loss"], 1, delta=1e-5, msg=str(step))
            self.assertEqual(moved[step]["tokens_total"], line["tokens_total"])
        self.as_one_rank(tensors_of(place.checkpoint("moved", 220)),
                         tensors_of(place.checkpoint("whole", 220)))
        for tensor in of_eight.values():  # every element is there
            self.assertTrue(torch.isfinite(tensor).all())

    # In fp64: rounding of fp32 may send a token near a tie to other experts. A run goes on because
    # more steps are asked of it, so how many there were does not depend on the machine.
    def experts_through(self, *mixes):
        """(mix, ranks) after each other, then one rank, beside one rank from the beginning."""
        place = self.place
        (place.root / "recipe.yaml").write_text(EXPERTS)
        place.run("whole", ONE, f"shapes.0.steps={STEPS * (len(mixes) + 1)}",
                  f"checkpoint.every_steps={STEPS}")
        last = 0
        for mix, ranks in (*mixes, (ONE, 1)):
            start = (("resume", "moved", "--allow-changes") if last else
                     ("run", "recipe.yaml", "--directory", "moved"))
            last += STEPS
            place.ptrain(*start, mix, f"cluster.ranks_per_node={ranks}",
                         f"shapes.0.steps={last}")
            self.as_one_rank(tensors_of(place.checkpoint("moved", last)),
                             tensors_of(place.checkpoint("whole", last)), 1e-9)
        moved, whole = place.metrics("moved"), place.metrics("whole")
        self.assertEqual(sorted(whole), sorted(moved))
        for step, line in whole.items():
            self.assertAlmostEqual(moved[step]["loss"] / line["loss"], 1, delta=1e-9, msg=str(step))

    def test_experts_go_on_from_mix_to_mix(self):
        self.experts_through((FOLDED, 8), (SLICED, 4))

    def test_sixteen_ranks_of_all_axes_go_on_in_other_mixes(self):
        self.experts_through((PITHTRAIN, 16), (EIGHT_OF_EXPERTS, 8))

    def as_one_rank(self, found, expected, bound=1e-3):
        self.assertEqual(sorted(found), sorted(expected))
        for key, tensor in expected.items():
            if key.endswith("k_proj.bias"):
                continue
            apart = (found[key] - tensor).norm() / tensor.norm().clamp(min=1e-12)
            self.assertLess(apart.item(), bound, key)

    def test_a_mix_saves_what_one_rank_saves(self):
        place = self.place
        short = ("shapes.0.steps=1", "shapes.1.steps=1", "learning_rate.warmup_steps=1")
        place.run("whole", ONE, *short)
        place.run("mixed", EIGHT, "cluster.ranks_per_node=8", *short)
        self.as_one_rank(tensors_of(place.checkpoint("mixed", 1)),
                         tensors_of(place.checkpoint("whole", 1)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
