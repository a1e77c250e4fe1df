"""Runs of `ptrain` that lose ranks, nodes and the network on the test cluster, and go on.

    survive_test.py FOLDER PTRAIN     FOLDER: where states and results go

Ends with 77, and the reason, where no cluster can be started.
"""

import json
import pathlib
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from runs import DP, Runs, seconds, whole_lines  # noqa: E402

FOLDER, PTRAIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
CONSTANT = "learning_rate.decay=constant"  # else the last step would count


class SurviveTest(Runs):
    folder, binary, state = FOLDER, PTRAIN, "state-survive"

    def attempt_begins(self, name, number, limit=60):
        """Waits until training goes on in that attempt; when it did."""
        def find():
            begun = [event for event in self.events(name, "shape_started")
                     if event["attempt"] == number]
            return begun[0] if begun else None
        return seconds(until(find, limit, f"attempt {number} of {name} trains"))

    def stop(self, job, name, on="node1"):
        self.cluster.run(self.binary, "stop", self.work / name, on=on)
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")

    def tell(self, what, name, begin):
        """How long the first failure took to be known, and to be past."""
        known = seconds(until(lambda: self.events(name, "attempt_ended"), 60, "a verdict")[0])
        trains = self.attempt_begins(name, 2)
        print(f"{what}: known after {known - begin:.1f} s, training after {trains - begin:.1f} s",
              file=sys.stderr)
        return known - begin, trains - begin

    def check_losses(self, name, job, *arguments):
        """Those of a run that nothing disturbed, on other ranks."""
        now = self.num_steps(name)
        until(lambda: self.num_steps(name) > now + 20, 60, f"{name} goes on")
        self.stop(job, name)
        losses = self.losses(name)
        steps = [json.loads(line)["step"]
                 for line in (self.work / name / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))  # none is missing, none is twice
        self.ptrain(1, "run", "long.yaml", CONSTANT, f"shapes.0.steps={len(losses)}", *arguments,
                    "--directory", f"{name} undisturbed")
        alone = self.losses(f"{name} undisturbed")[:len(losses)]
        worst = max(abs(a / b - 1) for a, b in zip(losses, alone, strict=True))
        self.assertLess(worst, 1e-5)

    def test_a_node_is_lost(self):
        rows = "shapes.1.global_batch_tokens=576"  # that divide over 3 and 4
        job = self.started("lost", 4, "run", "long.yaml", CONSTANT, rows)
        begin = time.time()
        self.cluster.kill_node("node3")
        known, trains = self.tell("a lost node", "lost", begin)
        self.assertLess(known, 20)  # 3 to 4 on a machine with nothing else to do
        self.assertLess(trains, 60)
        decision = self.events("lost", "decision")[0]
        self.assertEqual((decision["code"], decision["exclude"]), (14, ["node3"]))
        chosen = self.events("lost", "plan_chosen")[-1]
        self.assertEqual(chosen["nodes"], ["node1", "node2", "node4"])
        places = {place["node"] for place in self.read("lost", "plan.json")["ranks"]}
        self.assertEqual(places, {"node1", "node2", "node4"})
        self.check_losses("lost", job, rows)
        mortem = (self.work / "lost" / "logs" / "attempt-1" / "post-mortem.txt").read_text()
        for part in ("the node node3 does not answer", "rank 2: node3", f"JobId={job}"):
            self.assertIn(part, mortem)
        told = self.cluster.run(self.binary, "explain", self.work / "lost").stdout
        self.assertIn("then: a new attempt starts from step", told)
        self.assertIn("in which machines were held", told)

    def test_a_rank_dies_twice_on_one_node(self):
        job = self.started("dies", 2, "run", "long.yaml", CONSTANT, DP)
        begin = time.time()
        self.cluster.run("pkill", "-9", "-x", "ptrain", on="node2")
        known, _ = self.tell("a dead rank", "dies", begin)
        self.assertLess(known, 5)
        self.assertEqual(self.events("dies", "decision")[0]["exclude"], [])
        now = self.num_steps("dies")
        self.wait_for_step(job, "dies", now + 20)
        self.cluster.run("pkill", "-9", "-x", "ptrain", on="node2")
        self.attempt_begins("dies", 3)
        self.assertEqual(self.events("dies", "decision")[1]["exclude"], ["node2"])
        hosts = {event["host"] for event in self.events("dies", "rank_ready")
                 if event["attempt"] == 3}
        self.assertEqual(hosts, {"node1"})
        self.check_losses("dies", job)

    def test_a_cable_is_pulled(self):
        job = self.started("cut", 2, "run", "long.yaml", DP)
        self.cluster.cut("node2")
        time.sleep(1.5)
        self.cluster.restore("node2")
        now = self.num_steps("cut")
        self.wait_for_step(job, "cut", now + 20)
        self.assertEqual(self.events("cut", "attempt_ended"), [])  # so short a time harms nothing
        begin = time.time()
        self.cluster.cut("node2")
        known, _ = self.tell("a cut cable", "cut", begin)
        self.assertLess(known, 20)  # 3 to 4 on a machine with nothing else to do
        until(lambda: self.no_rank_on("node2"), 40, "no rank lives on a node that is cut off")
        self.stop(job, "cut")

    def time_is_up(self, how):
        """A submitted run, until its job ends for its time limit; the verdict."""
        ends = "cluster.setup=['scontrol update job=$SLURM_JOB_ID EndTime=now+20']"
        self.cluster.run(self.binary, "run", "long.yaml", CONSTANT, DP, ends, "--nodes=2",
                         "--time=10", f"failure.time_limit={how}", "--detach", "--directory",
                         how, cwd=self.work, environment=self.environment)
        trains = self.attempt_begins(how, 1)
        first = until(lambda: self.read_or_none(how, "verdict.json"), 60, "the time is up")
        print(f"stopped {time.time() - trains:.1f} s after it began", file=sys.stderr)
        self.assertEqual(first["code"], 21)
        self.assertIn("time is up", first["reason"])
        saved = max(path.name for path in (self.work / how / "checkpoints").glob("step-*"))
        self.assertEqual(saved, f"step-{first['step']:08}")
        return first

    def jobs_of(self, name):
        """Those of its attempts, in their order."""
        return [event["job"] for event in self.events(name, "attempt_started")]

    def test_time_is_up_and_a_new_job_goes_on(self):
        self.assertIn("a job that follows", self.time_is_up("chain")["next"])
        self.attempt_begins("chain", 2)
        self.cluster.run("scancel", "--user=root")
        self.assertEqual(len(set(self.jobs_of("chain"))), 2)

    def test_time_is_up_and_slurm_starts_the_job_again(self):
        first = self.time_is_up("requeue")
        self.attempt_begins("requeue", 2)  # Slurm holds it for as long as credentials live
        again = self.events("requeue", "shape_started")[1]
        self.assertEqual(again["step"], first["step"])
        before, job = self.jobs_of("requeue")
        self.assertEqual(before, job)
        self.assertEqual(first["next"], f"Slurm starts job {job} again, and it goes on")
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        until(lambda: self.num_steps("requeue") > first["step"] + 5, 60, "it goes on")
        self.stop(job, "requeue")
        steps = [line["step"] for line in whole_lines(self.work / "requeue" / "metrics.jsonl")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))  # none is missing, none is twice

    def test_scancel(self):
        """srun, too, gets Slurm's signal here and kills the ranks, unless they are quicker."""
        job = self.started("cancelled", 2, "run", "long.yaml", DP)
        self.cluster.run("scancel", job)
        verdict = until(lambda: self.read_or_none("cancelled", "verdict.json"), 30, "a verdict")
        if verdict["code"] == 143:
            self.assertIn("Slurm ended the job", verdict["reason"])
        else:
            self.assertEqual(verdict["code"], 21)
            saved = self.work / "cancelled" / "checkpoints" / f"step-{verdict['step']:08}"
            self.assertTrue(saved.is_dir())
        self.assertEqual(self.cluster.wait(job)["JobState"], "CANCELLED")
        until(self.no_rank_left, 20, "no rank is left")

    def test_preflight(self):
        begin = time.monotonic()
        said = self.ptrain(4, "doctor")
        print(f"doctor on 4 nodes: {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertRegex(said, r"ok +nodes: node\[1-4\]: one ptrain, this folder is shared")
        self.assertLess(time.monotonic() - begin, 20)  # 1 to 2
        self.cluster.slow("node3", 20)
        self.assertRegex(self.ptrain(4, "doctor"), r"node3: sends to its neighbour at \d+ % of the median of the nodes")
        self.cluster.restore("node3")
        private = "/dev/shm/run"  # each node has its own
        said = self.ptrain(2, "run", "recipe.yaml", DP, "--directory", private, code=3)
        self.assertIn("node2: does not see what is written to the run directory elsewhere", said)

    def test_no_secret_is_kept(self):
        secret = "tok-51aa9f0e77"
        self.environment["MY_API_TOKEN"] = secret
        self.addCleanup(self.environment.pop, "MY_API_TOKEN")
        told = self.work / "told"
        notify = f"failure.notify=[sh, -c, 'echo \"$PTRAIN_VERDICT\" > \"$0\"', '{told}']"
        self.ptrain(2, "run", "recipe.yaml", DP, notify, "--directory", "secret")
        for path in (self.work / "secret").rglob("*"):
            if path.is_file():
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.assertIn("ptrain: finished; step 25", told.read_text())

    def read_or_none(self, name, file):
        return self.read(name, file) if (self.work / name / file).exists() else None

    def no_rank_on(self, name):
        return self.cluster.run("pgrep", "-f", "ptrain worker", on=name, check=False).returncode != 0


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
