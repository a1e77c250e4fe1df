"""The command blocks of docs/launching.md, one after the other, on the login node of the test cluster.

    docs_test.py FOLDER PTRAIN     FOLDER: where states and results go

Ends with 77, and the reason, where no cluster can be started.
"""

import os
import pathlib
import re
import shutil
import sys
import unittest

sys.dont_write_bytecode = True

from cluster import Cluster, until, why_not  # noqa: E402

FOLDER, PTRAIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "launching.md"

RECIPE = """\
version: 1
name: small
seed: 5
model: {hidden_size: 24, intermediate_size: 40, num_hidden_layers: 2, num_attention_heads: 2,
        num_key_value_heads: 1}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], packing: {window: 64}, cache: cache}
shapes:
  - {name: only, sequence: 24, global_batch_tokens: 288, steps: 20}
learning_rate: {peak: 3e-3, warmup_steps: 5}
parallel: {dp: 2, shard: 1}
checkpoint: {every_steps: 10}
"""


def blocks():
    """(language, text, line) of each fenced block."""
    text = DOCUMENT.read_text(encoding="utf-8")
    return [(found[1], found[2], text.count("\n", 0, found.start()) + 1)
            for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


class DocsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = FOLDER / "documented"
        cls.cluster = Cluster(FOLDER / "state-docs", visible=[FOLDER, PTRAIN.parent, ROOT])
        cls.cluster.down()  # one that an interrupted test left still writes there
        shutil.rmtree(cls.work, ignore_errors=True)
        (cls.work / "text").mkdir(parents=True)
        for i in range(60):
            (cls.work / "text" / f"{i:02}.txt").write_text(f"{i} is {i * i} " * (i % 13 + 1))
        (cls.work / "recipe.yaml").write_text(RECIPE)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(node_timeout=5)
        cls.environment = {"SLURM_PMIX_FENCE": "", "CI": "1", "HOME": str(cls.work),
                           "XDG_CACHE_HOME": str(cls.work / "cache-of-user"),
                           "PATH": f"{PTRAIN.parent}:{os.environ['PATH']}"}

    def settle(self, stopped):
        """A reader takes longer from one block to the next: jobs have begun to train, or are gone."""
        def settled():
            jobs = self.cluster.run("squeue", "-h", "-o", "%T %Z").stdout.splitlines()
            if stopped and jobs:
                return False
            return all(state == "RUNNING" and "step" in self.output(folder)
                       for state, folder in (job.split(" ", 1) for job in jobs))
        until(settled, 120, "jobs train or are gone")

    @staticmethod
    def output(folder):
        return "".join(path.read_text() for path in pathlib.Path(folder).glob("logs/slurm-*.out"))

    def test_every_block(self):
        self.assertGreater(len(blocks()), 8)
        stopped = False
        for language, text, line in blocks():
            with self.subTest(line=line):
                self.settle(stopped)
                stopped = "ptrain stop" in text
                if language == "yaml":
                    (self.work / "cluster.yaml").write_text(RECIPE + text)
                    text = "ptrain run cluster.yaml --dry-run"
                else:
                    self.assertEqual(language, "sh", "a block that is not run")
                done = self.cluster.run("bash", "-e", "-c", text, cwd=self.work, check=False,
                                        environment=self.environment)
                self.assertEqual(done.returncode, 0, text + done.stdout + done.stderr)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
