"""Jobs of an array that go on with one run, one after the other, on the test cluster.

    array_test.py FOLDER PTRAIN FAKE     FOLDER: where states and results go; FAKE: a ptrain beside an
                                       engine without tensors (tests/launch/fake_engine.cc)

Ends with 77, and the reason, where no cluster can be started.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from fake_runs import FakeRuns  # noqa: E402
from runs import DP, whole_lines  # noqa: E402

FOLDER, PTRAIN, FAKE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
# The first task alone runs into its time limit.
LIMIT = "cluster.setup=['[ $SLURM_ARRAY_TASK_ID != 1 ] || scontrol update job=$SLURM_JOB_ID EndTime=now+20']"


class ArrayTest(FakeRuns):
    folder, binary, fake_ptrain, state = FOLDER, PTRAIN, FAKE, "state-array"

    def submitted(self, name, *options, tasks=3):
        """A run without an end in an array of jobs: the number of the array."""
        self.login("run", "long.yaml", DP, "-N2", f"--array={tasks}", "--time=10", "--detach", "--directory", name,
                   *options)
        return self.read(name, "job.json")["job"]

    def status(self, name):
        return json.loads(self.login("status", "--json", name))

    def queue(self):
        """Task -> state of all that Slurm has still to do."""
        lines = self.cluster.run("squeue", "-h", "-r", "-o", "%i %T").stdout.splitlines()
        return dict(line.split() for line in lines)

    def trains_in(self, job, name):
        """Waits until this task has made steps."""
        def begun():
            return any(event["job"] == job for event in self.events(name, "attempt_started"))
        until(begun, 60, f"{job} begins an attempt")
        now = self.num_steps(name)
        until(lambda: self.num_steps(name) > now + 5, 60, f"{job} trains")

    def test_each_task_goes_on_where_the_one_before_ended(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        array = self.submitted("chain", LIMIT)
        self.assertEqual((self.status("chain")["state"], self.status("chain")["job"]), ("queued", array))
        self.cluster.run("scancel", hold)

        self.trains_in(f"{array}_1", "chain")
        now = self.status("chain")
        self.assertEqual((now["state"], now["job"]), ("running", f"{array}_1"))
        self.assertRegex(now["job_state"], r"^runs on node\[\d-\d\]$")
        self.assertIn(f"job {array}_1 of this run runs", self.login("resume", "chain", code=2))
        self.assertIn(f"slurm-{array}_1.out", self.login("logs", "chain"))
        until(lambda: (self.work / "chain/verdict.json").exists(), 60, "the time is up")
        first = self.read("chain", "verdict.json")
        self.assertEqual((first["code"], first["next"]), (21, f"task {array}_2 of the job array goes on, where it is still in the queue"))

        self.trains_in(f"{array}_2", "chain")
        again = self.events("chain", "shape_started")[-1]
        self.assertEqual((again["attempt"], again["step"]), (2, first["step"]))
        self.assertRegex(self.login("list", "."), rf"chain  running  step \d+/\d+  job {array}_2\n")
        home = self.cluster.job(f"{array}_2")["BatchHost"]
        self.cluster.run("pkill", "-KILL", "-f", "ptrain supervise", on=home)

        self.trains_in(f"{array}_3", "chain")  # it has the number of the array
        self.assertIn(f"slurm-{array}_3.out", self.login("logs", "chain"))
        self.login("stop", "chain")
        until(lambda: not self.queue(), 60, "all has ended")
        ended = self.status("chain")
        self.assertEqual((ended["state"], ended["code"], ended["job"]), ("stopped", 20, f"{array}_3"))
        self.assertIn("continue from step", ended["next"])
        told = self.login("explain", "chain")
        for task in (1, 2, 3):
            self.assertIn(f"Slurm job {array}_{task}, on", told)
        steps = [line["step"] for line in whole_lines(self.work / "chain/metrics.jsonl")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def test_a_setup_that_fails_ends_all_of_it(self):
        array = self.submitted("unset", "cluster.setup=['exit 7']")
        until(lambda: not self.queue(), 60, "all has ended")
        self.assertEqual(self.status("unset")["job"], f"{array}_1")
        logs = sorted(path.name for path in (self.work / "unset/logs").glob("slurm-*.out"))
        self.assertEqual(logs, [f"slurm-{array}_1.out"])

    def test_a_changed_recipe_ends_all_of_it(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        array = self.submitted("changed")
        with (self.work / "changed/recipe.yaml").open("a") as recipe:
            recipe.write("# changed\n")
        self.cluster.run("scancel", hold)
        until(lambda: not self.queue(), 60, "all has ended")
        self.assertIn("was changed after", self.status("changed")["reason"])
        logs = sorted(path.name for path in (self.work / "changed/logs").glob("slurm-*.out"))
        self.assertEqual(logs, [f"slurm-{array}_1.out"])

    def test_the_last_task_dies_without_a_word(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        array = self.submitted("died", tasks=2)
        # As long as a task before this would still end.
        with subprocess.Popen(["flock", self.work / "died/lock", "sleep", "10"]):
            self.cluster.run("scancel", hold)
        self.trains_in(f"{array}_1", "died")
        self.cluster.run("scancel", "--signal=USR1", "--batch", f"{array}_1", check=False)
        self.trains_in(f"{array}_2", "died")
        self.assertEqual(self.read("died", "verdict.json")["code"], 21)
        home = self.cluster.job(f"{array}_2")["BatchHost"]
        self.cluster.run("pkill", "-KILL", "-f", "ptrain supervise", on=home)
        until(lambda: not self.queue(), 60, "all has ended")
        ended = self.status("died")
        self.assertEqual((ended["state"], ended["job"]), ("failed", f"{array}_2"))
        self.assertIn("without a verdict", ended["reason"])

    def test_stop_ends_all_of_it(self):
        array = self.submitted("stopped")
        self.trains_in(f"{array}_1", "stopped")
        # As before a preemption. While others wait scancel (22.05) signals a task until it is gone, and complains.
        self.cluster.run("scancel", "--signal=USR1", "--batch", f"{array}_1", check=False)
        self.trains_in(f"{array}_2", "stopped")
        told = self.read("stopped", "verdict.json")
        self.assertEqual((told["code"], told["next"]), (21, f"task {array}_2 of the job array goes on, where it is still in the queue"))
        until(lambda: set(self.queue().values()) == {"RUNNING", "PENDING"}, 60, "the first has ended")
        self.login("stop", "stopped")
        until(lambda: not self.queue(), 60, "all has ended")
        self.assertEqual((self.status("stopped")["code"], self.status("stopped")["job"]), (20, f"{array}_2"))
        done = self.num_steps("stopped")

        self.login("resume", "stopped", "--detach")
        again = self.read("stopped", "job.json")["job"]
        self.trains_in(f"{again}_1", "stopped")
        self.assertGreater(self.num_steps("stopped"), done)
        self.cluster.run("scancel", "--user=root")
        until(lambda: not self.queue(), 60, "all has ended")

        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        self.login("resume", "stopped", "--detach")
        self.assertIn("out of the queue", self.login("stop", "stopped"))
        self.assertEqual(set(self.queue()), {str(hold)})
        self.assertEqual(self.status("stopped")["job"], self.read("stopped", "job.json")["job"])

    def test_a_finished_run_has_no_further_task(self):
        said = self.login("run", "recipe.yaml", DP, "-N2", "--array=1-3%1", "--directory", "done")
        array = self.read("done", "job.json")["job"]
        self.assertRegex(said, rf"job {array}_1 runs on node")
        self.assertIn("ptrain: finished; step 25", said)
        until(lambda: not self.queue(), 30, "the others are cancelled")
        self.assertEqual((self.status("done")["state"], self.status("done")["job"]), ("finished", f"{array}_1"))
        self.assertEqual([path.name for path in (self.work / "done/logs").glob("slurm-*")], [f"slurm-{array}_1.out"])
        self.cluster.run("sbatch", "--wait", "done/job.sh", cwd=self.work, environment=self.environment)
        again = self.read("done", "job.json")["job"]
        self.assertIn("all of its steps are done", (self.work / f"done/logs/slurm-{again}_1.out").read_text())

    def fails_for_good(self, name, environment):
        """Rank 0 ends with a loss that is not a number, which another start would not cure."""
        said = self.login("run", "recipe.yaml", DP, "-N2", "--array=3", "--directory", name, code=16,
                          binary=self.fake_bin / "ptrain",
                          environment=dict(environment, PTRAIN_FAKE="0:error@7"))
        until(lambda: not self.queue(), 30, "all has ended")
        array = self.read(name, "job.json")["job"]
        self.assertEqual([event["job"] for event in self.events(name, "attempt_started")], [f"{array}_1"], said)
        self.assertEqual(self.status(name)["code"], 16)
        return array

    def test_a_run_that_failed_for_good_is_not_tried_again(self):
        array = self.fails_for_good("failed", {})
        self.assertEqual(self.status("failed")["job"], f"{array}_1")

    def test_a_task_that_could_not_be_cancelled_does_nothing(self):
        tools = self.work / "no scancel"
        tools.mkdir()
        (tools / "scancel").write_text("#!/bin/sh\necho 'scancel: error: try later' >&2; exit 1\n")
        (tools / "scancel").chmod(0o755)
        array = self.fails_for_good("uncancelled", {"PATH": f"{tools}:{os.environ['PATH']}"})
        first, *others = ((self.work / f"uncancelled/logs/slurm-{array}_{task}.out").read_text() for task in (1, 2, 3))
        self.assertIn("could not be cancelled: scancel: try later", first)
        for said in others:
            self.assertIn("nothing is left to this task\nptrain: FAILED (16)", said)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
