"""A run small enough to be killed often: two shapes of five steps each on two ranks."""

import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

RECIPE = """\
version: 1
name: kill
seed: 11
model: {{family: llama, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1,
        num_attention_heads: 2, num_key_value_heads: 1, vocab_size: 320}}
data:
  tokenizer: byte
  train: [{{path: "{root}/text/*.txt"}}]
  validation: [{{path: "{root}/validation.txt"}}]
  packing: {{window: 8}}
  cache: cache
shapes:
  - {{name: short, sequence: 16, global_batch_tokens: 64, steps: 5,
      parallel: {{shard: 2, zero: 3, recompute: full, micro_batch: 1}}}}
  - {{name: long, sequence: 32, global_batch_tokens: 128, steps: 5,
      parallel: {{dp: 2, shard: 1, micro_batch: 1, offload: optimizer}}}}
optimizer: {{kind: adamw}}
learning_rate: {{peak: 1e-2}}
precision: fp32
checkpoint: {{every_steps: 2, keep: 1}}
validation: {{tokens: 64, sample_tokens: 4}}
cluster: {{file: "{root}/cluster.yaml"}}
"""
NUM_STEPS = 10


class Place:
    """A folder with a text and a plan; its runs share nothing but these."""

    def __init__(self, binary, cluster):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="ptrain-kill-")
        self.root = pathlib.Path(self.folder.name)
        (self.root / "text").mkdir()
        draw = random.Random(5)
        for i in range(40):
            letters = "".join(draw.choice("abcdefgh ") for _ in range(draw.randint(1, 90)))
            (self.root / "text" / f"{i:03}.txt").write_text(letters)
        (self.root / "validation.txt").write_text("abc abc hgf " * 20)
        (self.root / "cluster.yaml").write_bytes(pathlib.Path(cluster).read_bytes())

    def folder_of(self, name):
        return self.root / name

    def run_of(self, name):
        return self.root / name / "run"

    def start(self, name, fault=""):
        """`ptrain run` of a new run, with a token index of its own."""
        folder = self.folder_of(name)
        folder.mkdir(exist_ok=True)
        (folder / "recipe.yaml").write_text(RECIPE.format(root=self.root))
        return self._spawn(["run", "recipe.yaml", "--directory", "run"], folder, fault)

    def resume(self, name, fault=""):
        return self._spawn(["resume", "run"], self.folder_of(name), fault)

    def _spawn(self, arguments, folder, fault):
        environment = dict(os.environ, PTRAIN_TEST_FAULT=fault, CI="1")
        with open(folder / "output", "ab") as output:
            return subprocess.Popen([self.binary, *arguments], env=environment, stdout=output,
                                    stderr=output, stdin=subprocess.DEVNULL, cwd=folder,
                                    start_new_session=True)

    def metrics(self, name):
        lines = (self.run_of(name) / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def checkpoints(self, name):
        """The published ones, oldest first."""
        return sorted((self.run_of(name) / "checkpoints").glob("step-*"))

    def output(self, name):
        return (self.folder_of(name) / "output").read_text(errors="replace")

    def lock_is_free(self, name):
        with open(self.run_of(name) / "lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False


def incomplete(checkpoint):
    """Why a published checkpoint is not whole, by the list of its files; None: it is."""
    try:
        files = json.loads((checkpoint / "ptrain.json").read_text())["files"]
    except (OSError, ValueError, KeyError) as error:
        return f"{checkpoint}: {error}"
    if ".metadata" not in files:
        return f"{checkpoint}: .metadata is not listed"
    for name, file in files.items():
        path = checkpoint / name
        if not path.exists() or path.stat().st_size != file["bytes"]:
            return f"{path} is not the file that was written"
    return None


def read_passes(record):
    """process -> {(rank, point): passes} of a file that the fault order `record` wrote."""
    passes = {}
    for line in record.read_text().splitlines():
        pid, rank, name = line.split()
        of_process = passes.setdefault(pid, {})
        of_process[rank, name] = of_process.get((rank, name), 0) + 1
    return passes


def processes_of(session):
    """Processes of a session that still run."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def kill_session(session):
    for pid in processes_of(session):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until_gone(session, limit_s=5.0):
    end = time.monotonic() + limit_s
    while left := processes_of(session):
        if time.monotonic() > end:
            return left
        time.sleep(0.02)
    return []
