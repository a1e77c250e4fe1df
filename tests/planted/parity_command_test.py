#!/usr/bin/env python3
"""`ptrain run --parity` names what a planted bug breaks. parity_command_test.py PLANTED_BIN CLUSTER"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BINARY, CLUSTER = sys.argv[1], sys.argv[2]

RECIPE = """\
version: 1
name: parity
seed: 3
model: {family: qwen2, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2,
        num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 320}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], cache: cache}
shapes:
  - {name: only, sequence: 48, global_batch_tokens: 192, steps: 5}
parallel: {dp: 2, shard: 1, micro_batch: 2, recompute: none}
learning_rate: {peak: 1e-2}
precision: fp32
cluster: {file: cluster.yaml}
"""


class Parity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="ptrain-parity-")
        cls.root = pathlib.Path(cls.holder.name)
        (cls.root / "recipe.yaml").write_text(RECIPE)
        (cls.root / "cluster.yaml").write_bytes(pathlib.Path(CLUSTER).read_bytes())
        (cls.root / "text").mkdir()
        for i in range(40):
            (cls.root / "text" / f"{i:02}.txt").write_text(f"text {i * i} is long\n" * (1 + i % 5))
        cls.runs = 0

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def command(self, arguments, bug=""):
        environment = dict(os.environ, PTRAIN_TEST_BUG=bug, OMP_NUM_THREADS="1")
        return subprocess.run([BINARY, *arguments], cwd=self.root, env=environment,
                              capture_output=True, text=True, timeout=120, check=False)

    def parity(self, bug="", overrides=(), window=True):
        """The result of --parity --json; without a window ranks send messages."""
        type(self).runs += 1
        arguments = ["run", "recipe.yaml", *overrides]
        if not window:
            shown = self.command([*arguments, "--dry-run"]).stdout
            plan = json.JSONDecoder().raw_decode(shown)[0]
            for shape in plan["shapes"]:
                shape["layout"]["shared_window"] = False
            (self.root / "plan.json").write_text(json.dumps(plan))
            arguments += ["--plan", "plan.json"]
        ran = self.command([*arguments, "--parity", "--json", "--directory", f"run{self.runs}"], bug)
        self.assertIn(ran.returncode, (0, 10), ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["code"], ran.returncode)
        shape = result["shapes"][0]
        self.assertEqual(shape["equal"], ran.returncode == 0)
        return shape

    def assert_first(self, shape, segment, parameter):
        """Each is (stage, name), or None."""
        self.assertFalse(shape["equal"])
        for kind, wanted in (("first_segment", segment), ("first_parameter", parameter)):
            found = shape[kind]
            self.assertEqual(found and (found["stage"], found["name"]), wanted, kind)

    def test_layouts_without_a_bug_are_equal(self):
        for overrides in (["parallel.recompute=selective", "parallel.offload=optimizer"],
                          ["parallel.dp=1", "parallel.shard=2", "parallel.zero=2"],
                          ["parallel.dp=1", "parallel.shard=2", "parallel.zero=3",
                           "parallel.recompute=full"]):
            for window in (True, False):
                with self.subTest(overrides=overrides, window=window):
                    shape = self.parity("", [*overrides, "precision=fp64"], window)
                    self.assertTrue(shape["equal"], shape)
                    counts = {stage["stage"]: stage["compared"] for stage in shape["stages"]}
                    self.assertEqual(counts["forward"], 6)  # 3 edges, 2 micro-batches
                    self.assertEqual(counts["backward"], 6)
                    self.assertGreaterEqual(counts["gradients"], 27)

    def test_families_and_bf16_are_equal(self):
        heads = "model.num_key_value_heads=0"
        for overrides in (["precision=bf16"], ["model.family=gpt2", heads, "precision=bf16"],
                          ["model.family=gemma3", "model.head_dim=8", "optimizer.kind=muon"],
                          ["model.family=llama", "model.tie_word_embeddings=true",
                           "optimizer.kind=adam8bit"]):
            with self.subTest(overrides=overrides):
                sharded = ["parallel.dp=1", "parallel.shard=2", "parallel.zero=3"]
                shape = self.parity("", [*overrides, *sharded])
                self.assertTrue(shape["equal"], shape)

    def test_a_gradient_whose_sign_rounding_turns_is_no_difference(self):
        tensor = "parallel={dp: 1, shard: 1, tp: 2, micro_batch: 2}"
        for kind in ("adamw", "lion"):
            with self.subTest(kind=kind):
                overrides = [tensor, "precision=bf16", "seed=5", f"optimizer.kind={kind}"]
                shape = self.parity("", overrides)
                self.assertTrue(shape["equal"], shape)

    def test_stages_in_two_dtypes_equal_one_rank_in_both(self):
        stages = ("parallel={dp: 1, shard: 1, pp: 2, virtual: 1, schedule: 1f1b, micro_batch: 1, "
                  "stage_dtype: 'fp32,bf16'}")
        shape = self.parity("", [stages])
        self.assertTrue(shape["equal"], shape)
        self.assertIn("layers:float32*2,bfloat16*2", shape["layout"])

    def test_an_embedding_and_a_head_that_all_stages_share_equal_one_rank(self):
        spread = ("parallel={dp: 1, shard: 1, pp: 2, virtual: 1, schedule: 1f1b, micro_batch: 1, "
                  "embedding: all_stages, head: all_stages}")
        shape = self.parity("", ["model.tie_word_embeddings=true", spread])
        self.assertTrue(shape["equal"], shape)
        self.assertIn("spread_embedding spread_head", shape["layout"])

    def test_a_gather_that_brings_nothing(self):
        shape = self.parity("stale_gather", ["parallel.dp=1", "parallel.shard=2", "parallel.zero=3"],
                            window=False)
        self.assertEqual(shape["first_segment"]["stage"], "forward")
        self.assertEqual(shape["first_segment"]["name"], "embedding")

    def test_replicas_that_do_not_add(self):
        for bug in ("missing_reduction", "double_reduction"):
            shape = self.parity(bug, window=False)
            self.assert_first(shape, ("whole step", "gradient norm"),
                              ("gradients", "lm_head.weight"))

    def test_a_norm_of_the_own_shard(self):
        shape = self.parity("local_clip_norm", ["parallel.dp=1", "parallel.shard=2"])
        self.assertEqual(shape["first_segment"]["name"], "gradient norm")
        different = {stage["stage"]: stage["different"] for stage in shape["stages"]}
        self.assertEqual(different["gradients"], 0)

    def test_a_mean_over_the_own_targets(self):
        shape = self.parity("local_denominator", ["parallel.micro_batch=1"])
        self.assertEqual(shape["first_segment"]["name"], "mean loss")

    def test_recomputation_that_forgets_the_rotary(self):
        shape = self.parity("recompute_without_turn", ["parallel.recompute=full"])
        self.assert_first(shape, ("backward", "block 1"),
                          ("gradients", "model.layers.1.self_attn.v_proj.bias"))

    def test_initial_values_that_depend_on_the_rank(self):
        shape = self.parity("init_by_rank")
        self.assert_first(shape, ("forward", "embedding"), ("initial values", "lm_head.weight"))
        self.assertEqual(shape["first_parameter"]["part"], 1)

    def test_rows_that_depend_on_the_rank(self):
        shape = self.parity("order_by_rank")
        self.assertEqual(shape["first_segment"]["stage"], "rows")
        self.assertEqual(shape["first_segment"]["part"], 1)

    def test_a_router_that_has_other_room(self):
        experts = ("model={family: mixtral, hidden_size: 32, intermediate_size: 64, num_experts: 4, "
                   "num_experts_per_tok: 2, num_hidden_layers: 2, num_attention_heads: 4, "
                   "num_key_value_heads: 2, vocab_size: 320, expert_capacity_factor: 0.8}")
        ring = "parallel={dp: 1, shard: 1, cp: {ring: 2, ulysses: 1}, micro_batch: 2}"
        shape = self.parity("", [experts, ring, "precision=fp64"])
        self.assertTrue(shape["equal"], shape)
        shape = self.parity("capacity_by_rank", [experts, ring, "precision=fp64"])
        self.assertEqual(shape["first_segment"]["stage"], "choices of experts")
        self.assertEqual(shape["first_segment"]["name"], "router of block 0")
        self.assertRegex(shape["first_segment"]["detail"],
                         r"token \d+ chose experts .* without room.*, on one rank ")

    def test_text_names_both(self):
        ran = self.command(["run", "recipe.yaml", "parallel.recompute=full", "--parity",
                            "--directory", "shown"], "recompute_without_turn")
        self.assertEqual(ran.returncode, 10, ran.stderr)
        self.assertIn("DIFFERENT\n  first segment: backward: block 1, micro-batch 0: apart by ",
                      ran.stdout)
        self.assertIn("first parameter: gradients: model.layers.1.", ran.stdout)
        self.assertIn("parity: shape 'only' differs from one rank, first in backward: block 1, "
                      "micro-batch 0", ran.stderr)
        status = self.command(["status", "shown"])
        self.assertIn("differs from one rank", status.stdout)
        self.assertIn("a parity run: nothing is trained", status.stdout)
        self.assertNotIn("step:", status.stdout)
        listed = self.command(["list", "."]).stdout
        self.assertIn("shown  failed  parity\n", listed)
        resumed = self.command(["resume", "shown"])
        self.assertEqual(resumed.returncode, 2, resumed.stderr)
        self.assertIn("is a parity run: it trained nothing to go on with", resumed.stderr)

    def test_a_rank_that_dies_is_named(self):
        environment = dict(os.environ, PTRAIN_TEST_FAULT="kill train.forward.block.begin 1 1")
        ran = subprocess.run([BINARY, "run", "recipe.yaml", "--parity", "--directory", "dead"],
                             cwd=self.root, env=environment, capture_output=True, text=True,
                             timeout=120, check=False)
        self.assertNotIn(ran.returncode, (0, 10))

    def test_a_stop_is_told_as_one(self):
        with subprocess.Popen([BINARY, "run", "recipe.yaml", "--parity", "--directory", "stopped"],
                              cwd=self.root, stderr=subprocess.PIPE, text=True) as running:
            for line in running.stderr:
                if line.startswith("parity: shape"):
                    running.send_signal(signal.SIGINT)
                    break
            said = running.stderr.read()
        self.assertEqual(running.returncode, 20, said)
        self.assertIn("parity: stopped before all was compared; nothing was trained", said)

    def test_usage(self):
        for arguments in (["--json"], ["--parity", "--dry-run"]):
            ran = self.command(["run", "recipe.yaml", *arguments])
            self.assertEqual(ran.returncode, 2, ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
