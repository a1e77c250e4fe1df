"""`ptrain run` on the login node of the test cluster: jobs that it submits.

    submit_test.py FOLDER PTRAIN     FOLDER: where states and results go

Ends with 77, and the reason, where no cluster can be started.
"""

import json
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True

from cluster import Cluster, until, why_not  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER, PTRAIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))

RECIPE = """\
version: 1
name: submitted
seed: 5
model: {hidden_size: 24, intermediate_size: 40, num_hidden_layers: 2, num_attention_heads: 2,
        num_key_value_heads: 1}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], packing: {window: 64}, cache: cache}
shapes:
  - {name: only, sequence: 24, global_batch_tokens: 288, steps: STEPS}
learning_rate: {peak: 3e-3, warmup_steps: 5}
precision: fp32
parallel: {dp: 2, shard: 1}
checkpoint: {every_steps: 10}
"""


class SubmitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = FOLDER / "submitted runs"  # blanks in every path
        shutil.rmtree(cls.work, ignore_errors=True)
        (cls.work / "text").mkdir(parents=True)
        for i in range(60):
            (cls.work / "text" / f"{i:02}.txt").write_text(f"{i} is {i * i} " * (i % 13 + 1))
        for name, steps in (("recipe.yaml", 20), ("long.yaml", 4000)):
            (cls.work / name).write_text(RECIPE.replace("STEPS", str(steps)))
        cls.cluster = Cluster(FOLDER / "state-submitted", visible=[FOLDER, PTRAIN.parent, ROOT])
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(node_timeout=5)
        cls.environment = {"SLURM_PMIX_FENCE": "", "CI": "1", "HOME": str(cls.work),
                           "XDG_CACHE_HOME": str(cls.work / "cache-of-user")}

    def tearDown(self):
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_for_nodes()

    def ptrain(self, *arguments, code=0, environment=None):
        """On the login node, to its end; what it said."""
        done = self.cluster.run(PTRAIN, *arguments, cwd=self.work, check=False, timeout=60,
                                environment=dict(self.environment, **(environment or {})))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def read(self, name, file):
        return json.loads((self.work / name / file).read_text())

    def job_of(self, name):
        return self.read(name, "job.json")["job"]

    def num_steps(self, name):
        path = self.work / name / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def wait_for_step(self, name, step):
        until(lambda: self.num_steps(name) >= step, 40, f"{name} makes {step} steps")

    def test_run_is_followed_to_its_end(self):
        said = self.ptrain("run", "recipe.yaml", "-N2", "--comment", 'a "b" #c', "--directory", "whole")
        self.assertRegex(said, r"job \d+ is submitted")
        self.assertRegex(said, r"job \d+ runs on node\[1-2\]")
        self.assertIn("step 20/20", said)
        self.assertEqual(self.read("whole", "verdict.json")["code"], 0)
        self.assertEqual([place["node"] for place in self.read("whole", "plan.json")["ranks"]],
                         ["node1", "node2"])
        job = self.cluster.run("scontrol", "-o", "show", "job", self.job_of("whole")).stdout
        self.assertIn('Comment=a "b" #c ', job)

    def test_following_is_left_and_the_job_goes_on(self):
        following = self.cluster.popen(PTRAIN, "run", "long.yaml", "--nodes=2", "--directory", "left",
                                       cwd=self.work, environment=self.environment,
                                       stderr=open(self.work / "left.out", "wb"))
        self.wait_for_step("left", 5)
        self.cluster.run("pkill", "-INT", "-x", "ptrain")
        self.assertEqual(following.wait(10), 0)
        self.assertRegex((self.work / "left.out").read_text(), r"job \d+ goes on\n  ptrain status ")
        before = self.num_steps("left")
        self.wait_for_step("left", before + 20)

    def state(self, name):
        return json.loads(self.ptrain("status", "--json", name))

    def submitted(self, name, *options, recipe="long.yaml"):
        self.ptrain("run", recipe, "-N2", "--detach", "--directory", name, *options)

    def test_status_list_and_stop_at_every_stage(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        self.submitted("stages")
        self.assertEqual(self.state("stages")["state"], "queued")
        self.assertIn("waits in the queue (Resources)", self.ptrain("status", "stages"))
        self.assertRegex(self.ptrain("list", "."), rf"stages  queued  step 0/4000  job {self.job_of('stages')}")
        self.assertIn("job", self.ptrain("resume", "stages", code=2))
        self.cluster.run("scancel", hold)
        self.wait_for_step("stages", 20)
        self.assertEqual(self.state("stages")["state"], "running")
        self.assertIn("a checkpoint", self.ptrain("stop", "stages"))
        self.assertEqual(self.cluster.wait(self.job_of("stages"))["ExitCode"], "20:0")
        stopped = self.state("stages")
        self.assertEqual((stopped["state"], stopped["code"]), ("stopped", 20))
        self.assertEqual(stopped["checkpoint"], stopped["step"])
        done = self.num_steps("stages")

        said = self.ptrain("resume", "stages", "--detach", "--time=5")
        self.assertIn("cluster.slurm.time", said)
        self.wait_for_step("stages", done + 20)
        logs = self.cluster.popen(PTRAIN, "logs", "--follow", "stages", cwd=self.work,
                                  environment=self.environment, stdout=open(self.work / "logs.out", "wb"))
        self.ptrain("stop", "--now", "stages")
        self.assertEqual(logs.wait(20), 0)
        self.assertIn("==> ", (self.work / "logs.out").read_text())
        self.assertIn("stopped at once", self.state("stages")["reason"])
        self.assertEqual(self.job_of("stages"), self.state("stages")["job"])

    def test_taken_out_of_the_queue(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        self.submitted("never")
        self.assertIn("out of the queue", self.ptrain("stop", "never"))
        ended = self.state("never")
        self.assertEqual((ended["state"], ended["attempt"]), ("stopped", 0))
        self.assertIn("CANCELLED before it began", ended["reason"])

    def test_detached_and_by_hand(self):
        said = self.ptrain("run", "recipe.yaml", "-N2", "--detach", "--directory", "by hand")
        self.assertIn("ptrain logs --follow", said)
        self.cluster.run("scancel", self.job_of("by hand"))
        self.cluster.wait(self.job_of("by hand"))
        job = self.cluster.run("sbatch", "--parsable", self.work / "by hand" / "job.sh",
                               environment=self.environment).stdout.strip()
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "0:0")
        self.assertEqual(self.num_steps("by hand"), 20)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
