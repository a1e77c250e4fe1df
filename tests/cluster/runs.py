"""What tests of `ptrain` on the test cluster share: a recipe in a folder with blanks in its name, runs in
jobs, and what is left of them."""

import datetime
import json
import pathlib
import shutil
import unittest

from cluster import Cluster, until

RECIPE = """\
version: 1
name: cluster
seed: 5
model: {hidden_size: 24, intermediate_size: 40, num_hidden_layers: 2, num_attention_heads: 2,
        num_key_value_heads: 1}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], packing: {window: 64}, cache: cache}
shapes:
  - {name: short, sequence: 24, global_batch_tokens: 288, steps: STEPS}
  - {name: long, sequence: 48, global_batch_tokens: 192, steps: 5}
learning_rate: {peak: 3e-3, warmup_steps: 5}
precision: fp32
checkpoint: {every_steps: 10}
"""
DP = "parallel={dp: 2, shard: 1}"
SHARDED = "parallel={dp: 1, shard: 2, zero: 3}"


def whole_lines(path):
    """The values in a file of JSON lines; a last one that is being written is left out."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def seconds(event):
    """When an event was, since 1970."""
    return datetime.datetime.fromisoformat(event["time"]).timestamp()


class Runs(unittest.TestCase):
    """Set `folder`, where states and results go, and `binary`, that of ptrain."""

    folder = binary = pathlib.Path()
    state = "state-runs"
    machines = {}  # more arguments of Cluster.up
    batch_options = ("--no-kill", "--no-requeue")

    @classmethod
    def setUpClass(cls):
        cls.work = cls.folder / f"runs of {cls.state}"  # blanks in every path
        cls.cluster = Cluster(cls.folder / cls.state, visible=[cls.folder, cls.binary.parent])
        cls.cluster.down()  # one that an interrupted test left still writes there
        shutil.rmtree(cls.work, ignore_errors=True)
        (cls.work / "text").mkdir(parents=True)
        for i in range(60):
            (cls.work / "text" / f"{i:02}.txt").write_text(f"{i} is {i * i} " * (i % 13 + 1))
        cls.write_recipe("recipe.yaml", 20)
        cls.write_recipe("long.yaml", 1000000)  # more than any machine makes
        cls.prepare()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(node_timeout=5, **cls.machines)
        # As ptrain finds a cluster: nothing is prepared for MPI.
        cls.environment = {"SLURM_PMIX_FENCE": "", "CI": "1", "HOME": str(cls.work),
                           "XDG_CACHE_HOME": str(cls.work / "cache-of-user")}

    @classmethod
    def prepare(cls):
        """Before there are machines."""

    @classmethod
    def write_recipe(cls, name, steps):
        (cls.work / name).write_text(RECIPE.replace("STEPS", str(steps)))

    def tearDown(self):
        for name in self.cluster.nodes:
            self.cluster.restore(name)
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_for_nodes()

    def ptrain(self, num_nodes, *arguments, code=0, timeout=120, environment=None):
        """In a job of so many nodes, on the login node, to its end; what it said."""
        done = self.cluster.run("salloc", "-Q", f"-N{num_nodes}", self.binary, *arguments, cwd=self.work,
                                check=False, timeout=timeout,
                                environment=dict(self.environment, **(environment or {})))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def started(self, name, num_nodes, *arguments):
        """A run in a batch job, once it has made 20 steps: its number."""
        command = " ".join(f"'{word}'" for word in (self.binary, *arguments, "--directory", name))
        # Without these Slurm itself ends a job whose node is lost, and starts it again.
        job = self.cluster.submit(command, f"-N{num_nodes}", *self.batch_options,
                                  f"--output={self.work}/{name}.out", cwd=self.work)
        self.wait_for_step(job, name, 20)
        return job

    def wait_for_step(self, job, name, step):
        def trains():
            state = self.cluster.job(job)["JobState"]
            if state not in ("PENDING", "CONFIGURING", "RUNNING"):
                self.fail(f"{state}: " + (self.work / f"{name}.out").read_text())
            return self.num_steps(name) >= step
        until(trains, 120, f"{name} makes {step} steps")

    def num_steps(self, name):
        path = self.work / name / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def read(self, name, file):
        return json.loads((self.work / name / file).read_text())

    def events(self, name, kind):
        return [event for event in whole_lines(self.work / name / "events.jsonl") if event["kind"] == kind]

    def losses(self, name):
        return [line["loss"] for line in whole_lines(self.work / name / "metrics.jsonl")]

    def no_rank_left(self):
        return all(self.cluster.run("pgrep", "-x", "ptrain", on=name, check=False).returncode != 0
                   for name in self.cluster.nodes)
