"""`ptrain resume CHECKPOINT --recipe FILE` from checkpoints of stock PyTorch and of ptrain.

    checkpoints_test.py BINARY FIXTURES
"""

import pathlib
import shutil
import sys
import unittest
import warnings

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                     get_optimizer_state_dict,
                                                     set_optimizer_state_dict)
from transformers import LlamaConfig, LlamaForCausalLM

from place import Place

BINARY, FIXTURES = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
warnings.filterwarnings("ignore", module="torch.distributed")

# The model of the fixtures; every row is the one document, so every step sees the same tokens.
RECIPE = """\
version: 1
name: imported
model: {hidden_size: 12, intermediate_size: 10, num_hidden_layers: 1, num_attention_heads: 3,
        num_key_value_heads: 1, head_dim: 4, vocab_size: 320}
data: {tokenizer: byte, train: [{path: one.txt}], cache: cache}
shapes: [{name: only, sequence: 64, global_batch_tokens: 128, steps: 12}]
learning_rate: {peak: 1e-3}
checkpoint: {every_steps: 10}
cluster: {file: cluster.yaml, ranks_per_node: 2}
"""
TEXT = "the quick brown fox jumps over the lazy dog"
EOS = 256
CONFIG = LlamaConfig(hidden_size=12, intermediate_size=10, num_hidden_layers=1, vocab_size=320,
                     num_attention_heads=3, num_key_value_heads=1, head_dim=4, rms_norm_eps=1e-5,
                     rope_theta=10000.0, tie_word_embeddings=False, max_position_embeddings=64)


def model_from(folder, step=None):
    """Transformers' model, and stock AdamW, from a checkpoint by stock PyTorch."""
    model = LlamaForCausalLM(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()  # makes the state, which loading then fills
    options = StateDictOptions(flatten_optimizer_state_dict=step is not None)
    state = {"model": get_model_state_dict(model)}
    if step is not None:
        optim = get_optimizer_state_dict(model, optimizer, options=options)
        state["optim"] = {key: value for key, value in optim.items()}
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    model.load_state_dict(state["model"])
    if step is not None:
        set_optimizer_state_dict(model, optimizer, state["optim"], options=options)
    return model, optimizer


def loss_of(model):
    tokens = torch.tensor([list(TEXT.encode()) + [EOS]])
    with torch.no_grad():
        logits = model(input_ids=tokens[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits[0], tokens[0, 1:]).item()


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.place = Place(BINARY)
        self.addCleanup(self.place.close)
        (self.place.root / "one.txt").write_text(TEXT)
        (self.place.root / "recipe.yaml").write_text(RECIPE)

    def resume(self, checkpoint, *more, code=0):
        return self.place.ptrain("resume", str(checkpoint), "--recipe", "recipe.yaml",
                                 "--directory", "run", *more, code=code)

    def test_torchtitan_goes_on_with_transformers_loss(self):
        said = self.resume(FIXTURES / "torchtitan", code=2)
        self.assertIn("place in the data: from the first document", said)
        self.assertFalse((self.place.root / "run").exists())
        said = self.resume(FIXTURES / "torchtitan", "--allow-changes")
        self.assertIn("torchtitan names without a prefix", said)
        metrics = self.place.metrics("run")
        self.assertEqual(sorted(metrics), list(range(8, 13)))  # 7 steps are done
        self.assertEqual(metrics[8]["tokens_total"], 32 * 7 + 2 * len(TEXT))
        model, _ = model_from(FIXTURES / "hf")
        self.assertAlmostEqual(metrics[8]["loss"], loss_of(model), delta=1e-6)
        self.assertLess(metrics[12]["loss"], metrics[8]["loss"])

    def test_either_naming_trains_the_same(self):
        self.resume(FIXTURES / "torchtitan", "--allow-changes")
        torchtitan = self.place.metrics("run")
        shutil.rmtree(self.place.root / "run")
        self.resume(FIXTURES / "hf", "--allow-changes")
        found = self.place.metrics("run")
        for step in range(8, 13):
            self.assertEqual(found[step]["loss"], torchtitan[step]["loss"])
            self.assertEqual(found[step]["grad_norm"], torchtitan[step]["grad_norm"])

    def test_a_resumed_import_goes_on_from_its_own_checkpoint(self):
        self.resume(FIXTURES / "torchtitan", "--allow-changes")
        whole = self.place.metrics("run")
        shutil.rmtree(self.place.checkpoint("run", 12))
        self.place.ptrain("resume", "run")
        found = self.place.metrics("run")
        self.assertEqual([found[step]["loss"] for step in range(8, 13)],
                         [whole[step]["loss"] for step in range(8, 13)])

    def test_weights_alone_start_fresh(self):
        model, _ = model_from(FIXTURES / "hf")
        folder = self.place.root / "weights"
        dcp.save(model.state_dict(), checkpoint_id=folder, no_dist=True)
        said = self.resume(folder, code=2)
        self.assertIn("optimizer state, and with it the step", said)
        self.resume(folder, "--allow-changes")
        metrics = self.place.metrics("run")
        self.assertEqual(sorted(metrics), list(range(1, 13)))
        self.assertAlmostEqual(metrics[1]["loss"], loss_of(model), delta=1e-6)

    def test_ptrains_own_continues_everything(self):
        self.place.run("whole")
        said = self.resume(self.place.checkpoint("whole", 10))
        self.assertIn("continues step 10", said)
        whole, found = self.place.metrics("whole"), self.place.metrics("run")
        self.assertEqual(sorted(found), [11, 12])
        for step, line in found.items():
            for name in ("loss", "grad_norm", "tokens_total", "learning_rate"):
                self.assertEqual(line[name], whole[step][name], name)
        said = self.resume(self.place.checkpoint("whole", 10), "shapes.0.steps=10", code=2)
        self.assertIn("shapes.0.steps: 12 -> 10", said)
        said = self.resume(self.place.checkpoint("whole", 12), "optimizer.eps=1e-7", code=2)
        self.assertIn("optimizer.eps: 1e-08 -> 1e-07", said)
        said = self.resume(self.place.checkpoint("whole", 10), "model.rope_theta=5000",
                           "--allow-changes", code=2)
        self.assertIn("model.rope_theta: 10000.0 -> 5000.0", said)

    def test_saved_state_is_complete_and_stock_names(self):
        self.place.run("whole")
        folder = self.place.checkpoint("whole", 12)
        keys = set(dcp.FileSystemReader(folder).read_metadata().state_dict_metadata)
        model, optimizer = LlamaForCausalLM(CONFIG), None
        expected = {"train.step", "train.tokens", "train.shape", "data.position",
                    "data.train_hash", "data.validation_hash", "ptrain.version", "ptrain.recipe"}
        model, optimizer = model_from(folder, step=12)
        options = StateDictOptions(flatten_optimizer_state_dict=True)
        expected |= {"model." + name for name in get_model_state_dict(model)}
        expected |= {"optim." + name
                     for name in get_optimizer_state_dict(model, optimizer, options=options)}
        self.assertEqual(keys, expected)
        state = optimizer.state[model.lm_head.weight]
        self.assertEqual(state["step"].item(), 12)
        self.assertGreater(state["exp_avg"].abs().max().item(), 0)
        self.assertEqual(list(optimizer.param_groups[0]["betas"]), [0.9, 0.95])

    def test_bad_checkpoints_are_refused_with_all_that_is_wrong(self):
        hf = self.place.root / "bad"
        state = {name: tensor for name, tensor in LlamaForCausalLM(CONFIG).state_dict().items()}
        state["model.norm.weight"] = torch.zeros(13)
        state["lm_head.weight"] = torch.zeros(320, 13)
        dcp.save(state, checkpoint_id=hf, no_dist=True)
        said = self.resume(hf, "--allow-changes", code=15)
        self.assertIn("'model.norm.weight' has the shape [13] instead of [12]", said)
        self.assertIn("'lm_head.weight' has the shape [320, 13] instead of [320, 12]", said)
        del state["model.norm.weight"], state["lm_head.weight"]
        shutil.rmtree(hf)
        dcp.save(state, checkpoint_id=hf, no_dist=True)
        said = self.resume(hf, "--allow-changes", code=15)
        self.assertIn("model.norm.weight", said)
        self.assertIn("lm_head.weight", said)
        (hf / ".metadata").write_bytes((hf / ".metadata").read_bytes()[:-40])
        self.assertIn(".metadata", self.resume(hf, "--allow-changes", code=15))
        (hf / ".metadata").write_bytes(b"cos\nsystem\n(S'echo'\ntR.")
        self.assertIn(".metadata", self.resume(hf, "--allow-changes", code=15))
        self.assertIn("no .metadata", self.resume(self.place.root, "--allow-changes", code=15))
        damaged = self.place.root / "damaged"
        shutil.copytree(FIXTURES / "hf", damaged)
        file = next(damaged.glob("*.distcp"))
        file.write_bytes(file.read_bytes()[:-9000])
        said = self.resume(damaged, "--allow-changes", code=15)
        self.assertIn("bytes instead of", said)
        self.assertIn("is a checkpoint, not a run", self.place.ptrain("resume", str(damaged), code=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
