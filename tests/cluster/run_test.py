"""`ptrain run` inside a Slurm job of the test cluster.

    run_test.py FOLDER PTRAIN     FOLDER: where states and results go

Ends with 77, and the reason, where no cluster can be started.
"""

import json
import os
import pathlib
import pwd
import shutil
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from runs import DP, SHARDED, Runs  # noqa: E402

FOLDER, PTRAIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))

ONCE = "failure.max_restarts=0"


class RunTest(Runs):
    folder, binary = FOLDER, PTRAIN

    def test_two_nodes_as_one(self):
        self.ptrain(1, "run", "recipe.yaml", "--directory", "one")
        one = self.losses("one")
        for name, layout in (("dp", DP), ("sharded", SHARDED)):
            self.ptrain(2, "run", "recipe.yaml", layout, "--directory", f"{name}-two")
            two = self.losses(f"{name}-two")
            self.assertEqual(len(two), 25)
            worst = max(abs(a / b - 1) for a, b in zip(two, one, strict=True))
            print(f"{name}: losses of two nodes and of one differ by {worst:.1e}", file=sys.stderr)
            self.assertLess(worst, 1e-5)
            plan = self.read(f"{name}-two", "plan.json")
            self.assertEqual([place["node"] for place in plan["ranks"]], ["node1", "node2"])
            self.assertFalse(any(shape["layout"]["shared_window"] for shape in plan["shapes"]))

    def test_ranks_are_where_the_plan_has_them(self):
        self.ptrain(4, "run", "recipe.yaml", "--directory", "four")
        plan = self.read("four", "plan.json")
        events = (self.work / "four" / "events.jsonl").read_text().splitlines()
        self.assertEqual(len(plan["ranks"]), 4)
        hosts = {event["rank"]: event["host"] for event in map(json.loads, events)
                 if event["kind"] == "rank_ready"}
        self.assertEqual(hosts, {place["rank"]: place["node"] for place in plan["ranks"]})

    def test_a_user_who_is_not_root(self):
        user = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
        mine = self.work / "of nobody"
        mine.mkdir()
        shutil.copytree(self.work / "text", mine / "text")
        shutil.copy(self.work / "recipe.yaml", mine)
        os.chown(mine, pwd.getpwnam("nobody").pw_uid, -1)
        self.cluster.run(*user, "salloc", "-Q", "-N4", PTRAIN, "run", "recipe.yaml", "--directory",
                         "run", cwd=mine, environment=dict(self.environment, HOME=str(mine),
                                                           XDG_CACHE_HOME=str(mine)))
        self.assertEqual(json.loads((mine / "run" / "verdict.json").read_text())["code"], 0)

    def test_dry_run_shows_srun(self):
        said = self.ptrain(4, "run", "recipe.yaml", "--dry-run")
        self.assertIn("SLURM_PMIX_FENCE=ring", said)
        self.assertRegex(said, "srun --mpi=pmix --kill-on-bad-exit=1 --nodes=4 --ntasks=4 ")

    def test_a_rank_dies(self):
        job = self.started("dies", 2, "run", "long.yaml", DP, ONCE)
        self.cluster.run("pkill", "-9", "-x", "ptrain", on="node2")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "11:0")
        verdict = self.read("dies", "verdict.json")
        self.assertEqual((verdict["rank"], verdict["signal"]), (1, signal.SIGKILL))
        until(self.no_rank_left, 5, "no rank is left")

    def test_a_node_is_lost(self):
        job = self.started("lost", 2, "run", "long.yaml", DP, ONCE)
        self.cluster.kill_node("node2")
        begin = time.monotonic()
        ended = self.cluster.wait(job)
        print(f"a lost node was known after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertEqual(ended["ExitCode"], "14:0")
        self.assertEqual(self.read("lost", "verdict.json")["nodes"], ["node2"])
        self.assertIn("node2", self.read("lost", "verdict.json")["reason"])
        self.cluster.restore("node2")
        until(self.no_rank_left, 5, "no rank is left")

    def test_supervisor_killed(self):
        self.started("orphans", 2, "run", "long.yaml", DP)
        self.cluster.run("pkill", "-9", "-f", "ptrain run", on="node1")
        begin = time.monotonic()
        until(self.no_rank_left, 30, "no rank is left")
        print(f"ranks gone {time.monotonic() - begin:.1f} s after their supervisor", file=sys.stderr)

    def test_stopped_at_once(self):
        job = self.started("at-once", 4, "run", "long.yaml")
        self.cluster.run(PTRAIN, "stop", "--now", self.work / "at-once", on="node1")
        ended = self.cluster.wait(job)
        self.assertNotEqual(ended["ExitCode"], "0:0")
        self.assertIn("stopped at once", self.read("at-once", "verdict.json")["reason"])
        until(self.no_rank_left, 2, "no rank is left")

    def test_stop_and_resume_on_other_nodes(self):
        job = self.started("stopped", 2, "run", "long.yaml", DP)
        self.cluster.run(PTRAIN, "stop", self.work / "stopped", on="node1")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")
        before = self.num_steps("stopped")
        missing = self.cluster.run(PTRAIN, "resume", "stopped", cwd=self.work, check=False,
                                   environment=self.environment)
        self.assertEqual(missing.returncode, 3)
        self.assertIn("salloc --nodes=2", missing.stderr)
        self.assertRegex(self.ptrain(1, "resume", "stopped", code=3),
                         "the plan needs 2 nodes, Slurm job [0-9]+ has 1")
        job = self.cluster.submit(f"'{PTRAIN}' resume stopped", "-N2", "--nodelist=node3,node4",
                                  f"--output={self.work}/stopped.out", cwd=self.work)
        self.wait_for_step(job, "stopped", before + 20)
        self.cluster.run(PTRAIN, "stop", self.work / "stopped", on="node3")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
