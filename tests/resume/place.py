"""A folder for small runs of the real command."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

ENDLESS = 1000000  # steps: more than any machine makes
RECIPE = """\
version: 1
name: resumed
seed: 3
model: {{hidden_size: 24, intermediate_size: 40, num_hidden_layers: 2, num_attention_heads: 2,
        num_key_value_heads: 1}}
data: {{tokenizer: byte, train: [{{path: "text/*.txt"}}], packing: {{window: 64}}, cache: cache}}
shapes:
  - {{name: short, sequence: 24, global_batch_tokens: 288, steps: {short}}}
  - {{name: long, sequence: 48, global_batch_tokens: 288, steps: {long}}}
learning_rate: {{peak: 3e-3, warmup_steps: 5}}
precision: fp32
parallel: auto
checkpoint: {{every_steps: 10, keep: 9}}
cluster: {{file: cluster.yaml, ranks_per_node: {ranks}}}
"""
CLUSTER = "name: test\nnodes: [{name: here, cores: 4, memory_gib: 8}]\n"


class Place:
    def __init__(self, binary):
        self.binary = binary
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="ptrain-resume-"))
        (self.root / "text").mkdir()
        draw = random.Random(7)
        for i in range(120):
            letters = "".join(draw.choice("abcdefgh .\n") for _ in range(draw.randint(1, 160)))
            (self.root / "text" / f"{i:03}.txt").write_text(letters)
        (self.root / "cluster.yaml").write_text(CLUSTER)
        self.recipe()

    def recipe(self, short=40, long=20, ranks=2, name="recipe.yaml"):
        (self.root / name).write_text(RECIPE.format(short=short, long=long, ranks=ranks))

    def close(self):
        shutil.rmtree(self.root)

    def spawn(self, *arguments):
        self.output = self.root / "output"
        with open(self.output, "wb") as output:
            return subprocess.Popen([self.binary, *arguments], cwd=self.root, stdout=output,
                                    stderr=output, stdin=subprocess.DEVNULL,
                                    env=dict(os.environ, CI="1"), start_new_session=True)

    def ptrain(self, *arguments, code=0):
        """Runs to the end, which must be `code`; returns what it said."""
        found = self.spawn(*arguments).wait(timeout=120)
        said = self.output.read_text()
        assert found == code, f"exit code {found} instead of {code} of {arguments}:\n{said}"
        return said

    def run(self, name, *more, code=0):
        return self.ptrain("run", "recipe.yaml", "--directory", name, *more, code=code)

    def metrics(self, name):
        """step -> what it measured."""
        path = self.root / name / "metrics.jsonl"
        if not path.exists():
            return {}
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        assert len({line["step"] for line in lines}) == len(lines), "a step is there twice"
        return {line["step"]: line for line in lines}

    def events(self, name, kind):
        lines = (self.root / name / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def wait_for_step(self, process, name, step):
        while max(self.metrics(name), default=0) < step:
            assert process.poll() is None, f"ended before step {step}:\n{self.output.read_text()}"
            time.sleep(0.005)

    def kill_all(self, process):
        """SIGKILL to ptrain, mpirun and every rank."""
        table = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    table.setdefault(int(fields[1]), []).append(int(entry.name))
                except OSError:
                    pass
        doomed = [process.pid]
        for pid in doomed:
            doomed += table.get(pid, [])
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()

    def checkpoint(self, name, step):
        return self.root / name / "checkpoints" / f"step-{step:08}"

    def checkpoints(self, name):
        return sorted((self.root / name / "checkpoints").glob("step-*"))


def damage(path):
    """Turns one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
