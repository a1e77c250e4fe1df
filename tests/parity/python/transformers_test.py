"""The real command against transformers and torch.optim on the same rows: initial weights, every
gradient, twenty steps of AdamW, final parameters, validation loss, on one rank and on several.

    python transformers_test.py PTRAIN ROWS_TOOL
"""
import os
import sys
import tempfile
import typing

try:
    import torch
    import transformers  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}; `scripts/setup --tests` installs what is missing")
    sys.exit(77)   # ctest's SKIP_RETURN_CODE

import command
import oracle

torch.set_num_threads(1)

SEED, STEPS, WARMUP, PEAK, FINAL, WEIGHT_DECAY, CLIP = 11, 20, 5, 3e-3, 0.1, 0.1, 0.5
BETAS = (0.9, 0.95)
SEQUENCE, ROWS_A_STEP, WINDOW, VALIDATION_ROWS = 33, 12, 16, 10
# Of the model that says what is right.
DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.float32}


class Bounds(typing.NamedTuple):
    """Of relative differences; parameters: of the distance travelled."""
    loss: float
    gradients: float
    losses: float
    norms: float
    parameters: float
    weights: float   # initial ones


# bf16 is held to float32: what 8 bits of significand cost, and no more.
BOUNDS = {"fp64": Bounds(1e-9, 1e-9, 1e-9, 1e-8, None, 1e-15),
          "fp32": Bounds(1e-6, 1e-6, 1e-6, 1e-5, 1e-3, 1e-7),
          "bf16": Bounds(3e-4, 1.5e-2, 1e-3, 1e-2, 5e-2, 1e-7)}

# Odd sizes on purpose: nothing divides by the number of ranks.
MODELS = {
    "grouped, free head": dict(
        hidden_size=20, intermediate_size=54, num_hidden_layers=2, vocab_size=263,
        num_attention_heads=4, num_key_value_heads=2, head_dim=6),
    "one key head, tied": dict(
        hidden_size=24, intermediate_size=50, num_hidden_layers=3, vocab_size=258,
        num_attention_heads=3, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True),
    "all heads, one block": dict(
        hidden_size=35, intermediate_size=94, num_hidden_layers=1, vocab_size=320,
        num_attention_heads=5, num_key_value_heads=5, head_dim=10),
}
LAYOUTS = {
    "one rank": dict(dp=1, shard=1, zero=1, micro_batch=4),
    "shard 3, zero 3": dict(dp=1, shard=3, zero=3, micro_batch=2, recompute="full"),
    "dp 2": dict(dp=2, shard=1, zero=1, micro_batch=3),
    "dp 2 x shard 2, zero 2": dict(dp=2, shard=2, zero=2, micro_batch=1),
}
# Each model on one rank and on several; every layout with some model.
PAIRS = [("grouped, free head", "one rank"), ("grouped, free head", "shard 3, zero 3"),
         ("one key head, tied", "shard 3, zero 3"),
         ("one key head, tied", "dp 2 x shard 2, zero 2"),
         ("all heads, one block", "one rank"), ("all heads, one block", "dp 2")]
CASES = [(*pair, precision) for pair in PAIRS for precision in ("fp64", "fp32")] + [
    (*pair, "bf16") for pair in PAIRS[:3]]


def recipe_of(folder, sizes, layout, precision, **changes):
    recipe = {
        "version": 1, "name": "parity", "seed": SEED, "precision": precision, "model": sizes,
        "data": {"tokenizer": "byte", "train": [{"path": f"{folder}/text/*.txt"}],
                 "validation_fraction": 0.25, "packing": {"window": WINDOW},
                 "cache": f"{folder}/cache"},
        "shapes": [{"name": "only", "sequence": SEQUENCE, "steps": STEPS,
                    "global_batch_tokens": SEQUENCE * ROWS_A_STEP}],
        "optimizer": {"kind": "adamw", "betas": list(BETAS), "eps": 1e-8,
                      "weight_decay": WEIGHT_DECAY, "clip_norm": CLIP},
        "learning_rate": {"peak": PEAK, "warmup_steps": WARMUP, "decay": "cosine", "final": FINAL},
        "parallel": layout, "cluster": {"ranks_per_node": layout["dp"] * layout["shard"]},
        "validation": {"tokens": SEQUENCE * VALIDATION_ROWS}}
    recipe.update(changes)
    return recipe


class Verdict:
    """Prints each figure beside its bound; a figure above it fails the test."""

    def __init__(self):
        self.failed = False

    def check(self, what, figure, bound):
        good = figure <= bound   # a NaN is not
        self.failed |= not good
        mark = "" if good else "  FAILED"
        print(f"  {what:<42} {figure:9.2e}  bound {bound:.0e}{mark}", flush=True)


def distance(a, b, scale):
    """||a - b|| / ||scale||."""
    norm = scale.double().norm().item()
    return (a.double() - b.double()).norm().item() / (norm if norm > 0 else 1.0)


def worst(found, truth):
    return max(abs(a - b) / abs(b) for a, b in zip(found, truth, strict=True))


def gradients(loss, parameters):
    return dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values()))))


class Case:
    def __init__(self, folder, sizes, layout, precision, tools, verdict):
        self.folder, self.verdict, (self.ptrain, self.rows_tool) = folder, verdict, tools
        self.exact, self.bounds = precision == "fp64", BOUNDS[precision]
        self.recipe = lambda **changes: recipe_of(folder, sizes, layout, precision, **changes)
        self.model = oracle.make_model(sizes, DTYPES[precision])
        command.write_corpus(f"{folder}/text")

    def run(self):
        weights = oracle.initial_weights(self.model, SEED)
        oracle.set_weights(self.model, weights)
        self.first_step(weights)
        self.training(weights)

    def rows(self, name, count):
        index = f"{self.folder}/cache/{name}"
        return oracle.batch_of(
            command.rows(self.rows_tool, index, SEED, SEQUENCE, WINDOW, count))

    def first_step(self, weights):
        """One step with a vanishing rate: its checkpoint holds the initial weights and, in the
        first moment, the gradients."""
        run = command.run(self.ptrain, self.recipe(
            shapes=[{"name": "only", "sequence": SEQUENCE, "steps": 1,
                     "global_batch_tokens": SEQUENCE * ROWS_A_STEP}],
            optimizer={"betas": list(BETAS), "clip_norm": 0},
            learning_rate={"peak": 1e-300, "decay": "constant"}), f"{self.folder}/first")
        found, moments, data = command.read_checkpoint(
            f"{run}/checkpoints/step-00000001", self.model)
        for name, value in weights.items():
            self.close_to_initial(name, found[name], value)
        batch = self.rows(data["train_hash"], ROWS_A_STEP)
        parameters = dict(self.model.named_parameters())
        loss = oracle.mean_loss(oracle.logits_of(self.model, batch), batch[1])
        truth = gradients(loss, parameters)
        if self.exact:
            self.check_oracle(batch, loss, truth)
        step = command.lines(f"{run}/metrics.jsonl")[0]
        assert step["tokens"] == (batch[1] != oracle.NO_TARGET).sum()
        self.verdict.check("first loss", worst([step["loss"]], [loss.item()]), self.bounds.loss)
        self.verdict.check("every gradient", max(
            distance(moments[name] / (1 - BETAS[0]), truth[name], truth[name])
            for name in truth), self.bounds.gradients)

    def close_to_initial(self, name, found, value):
        # The last bit of a logarithm may differ between C's library and Python's.
        assert torch.allclose(found, value, rtol=self.bounds.weights, atol=0), name

    def check_oracle(self, batch, loss, truth):
        """The patched transformers is the plain float64 formula."""
        weights = {name: value.detach().clone().requires_grad_() for name, value in
                   self.model.named_parameters()}
        plain = oracle.plain_loss(weights, self.model.config, batch)
        self.verdict.check("oracle: loss against the formula",
                          worst([loss.item()], [plain.item()]), 1e-13)
        self.verdict.check("oracle: gradients against the formula", max(
            distance(truth[name], value, value)
            for name, value in gradients(plain, weights).items()), 1e-12)

    def training(self, weights):
        run = command.run(self.ptrain, self.recipe(), f"{self.folder}/training")
        steps = command.lines(f"{run}/metrics.jsonl")
        found, _, data = command.read_checkpoint(f"{run}/checkpoints/step-{STEPS:08}", self.model)
        rows = self.rows(data["train_hash"], STEPS * ROWS_A_STEP)
        batches = list(zip(*(part.split(ROWS_A_STEP) for part in rows)))
        rates = [oracle.rate_of(step, PEAK, WARMUP, STEPS, FINAL) for step in range(1, STEPS + 1)]
        losses, norms = oracle.train(self.model, batches, rates, BETAS, WEIGHT_DECAY, CLIP)
        for what, truth, limit in (("learning_rate", rates, 1e-14),
                                   ("loss", losses, self.bounds.losses),
                                   ("grad_norm", norms, self.bounds.norms)):
            self.verdict.check(f"{what} of {STEPS} steps",
                              worst([step[what] for step in steps], truth), limit)
        assert min(norms) > CLIP, "every step is clipped"
        self.parameters(weights, found)
        self.validation(run, data["validation_hash"], found)

    def parameters(self, start, found):
        truth = {name: value.detach() for name, value in self.model.named_parameters()}
        if self.exact:
            self.verdict.check("final parameters, largest difference", max(
                (found[name] - value).abs().max().item() for name, value in truth.items()),
                1e-6 * PEAK * STEPS)
        else:
            self.verdict.check("final parameters, of the distance travelled", max(
                distance(found[name], value, value - start[name])
                for name, value in truth.items()), self.bounds.parameters)

    def validation(self, run, index, found):
        """With ptrain's own final weights: this is about rows and loss alone."""
        oracle.set_weights(self.model, found)
        batch = [part[:VALIDATION_ROWS] for part in self.rows(index, 0)]
        targets = batch[1]
        with torch.no_grad():
            loss = oracle.mean_loss(oracle.logits_of(self.model, batch), targets)
        event = command.last_validation(run)
        assert event["tokens"] == (targets != oracle.NO_TARGET).sum()
        self.verdict.check("validation loss", worst([event["loss"]], [loss.item()]),
                          1e-12 if self.exact else self.bounds.loss)


def main(*tools):
    verdict = Verdict()
    tools = [os.path.abspath(tool) for tool in tools]
    for model, layout, precision in CASES:
        print(f"{model}; {layout}; {precision}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            Case(folder, MODELS[model], LAYOUTS[layout], precision, tools, verdict).run()
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
