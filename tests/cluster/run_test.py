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
        """With ptrain installed in the home directory."""
        user = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
        mine = self.work / "of nobody"
        shutil.copytree(PTRAIN.parent, mine / ".local" / "bin", ignore=shutil.ignore_patterns("*cuda*"))
        shutil.copytree(self.work / "text", mine / "text")
        shutil.copy(self.work / "recipe.yaml", mine)
        os.chown(mine, pwd.getpwnam("nobody").pw_uid, -1)
        self.cluster.run(*user, "salloc", "-Q", "-N4", mine / ".local/bin/ptrain", "run", "recipe.yaml", "--directory",
                         "run", cwd=mine, environment=dict(self.environment, HOME=str(mine),
                                                           XDG_CACHE_HOME=str(mine)))
        self.assertEqual(json.loads((mine / "run" / "verdict.json").read_text())["code"], 0)

    def as_one(self, name, *arguments, nodes=2, environment=None):
        """A run on several nodes has the losses of one node; what it said."""
        if not (self.work / "reference").exists():
            self.ptrain(1, "run", "recipe.yaml", "--directory", "reference")
        said = self.ptrain(nodes, "run", "recipe.yaml", DP, *arguments, "--directory", name,
                           environment=environment)
        worst = max(abs(a / b - 1) for a, b in zip(self.losses(name), self.losses("reference"), strict=True))
        self.assertLess(worst, 1e-5)
        return said

    def test_mpirun_in_place_of_srun(self):
        self.as_one("by mpirun", "cluster.launcher=mpirun")
        hosts = {event["host"] for event in self.events("by mpirun", "rank_ready")}
        self.assertEqual(hosts, {"node1", "node2"})
        job = self.started("dies by mpirun", 2, "run", "long.yaml", DP, ONCE, "cluster.launcher=mpirun")
        hosts = {event["rank"]: event["host"] for event in self.events("dies by mpirun", "rank_ready")}
        self.cluster.run("pkill", "-9", "-f", "ptrain worker", on=hosts[1])
        # On several nodes mpirun may not get to tell the signal.
        self.assertIn(self.cluster.wait(job)["ExitCode"], ("10:0", "11:0"))
        self.assertEqual(self.read("dies by mpirun", "verdict.json")["nodes"], [hosts[1]])
        until(self.no_rank_left, 20, "no rank is left")

    def test_an_old_slurm(self):
        """Its srun lacks options: they are asked for, not guessed from a version."""
        tools = self.work / "old tools"
        tools.mkdir()
        srun = shutil.which("srun")
        (tools / "srun").write_text(f"""#!/bin/bash
if [ "$1" = --help ]; then {srun} --help | grep -v -e --overlap -e --cpu-bind; exit; fi
case " $* " in *" --overlap "*|*" --cpu-bind="*) echo "srun: unrecognized option" >&2; exit 1;; esac
exec {srun} "$@"
""")
        (tools / "srun").chmod(0o755)
        self.as_one("old", environment={"PATH": f"{tools}:{os.environ['PATH']}"})

    def test_without_scontrol(self):
        """As in many containers, which have srun at the most."""
        tools = self.work / "few tools"
        tools.mkdir()
        for path in pathlib.Path("/usr/bin").iterdir():
            if path.name != "scontrol":
                (tools / path.name).symlink_to(path)
        self.as_one("few", environment={"PATH": str(tools)})

    def test_copies_on_the_disks_of_nodes(self):
        self.assertNotIn("warning", self.as_one("copied", "cluster.local_copy=/tmp"))
        for name in ("node1", "node2"):
            listed = self.cluster.run("sh", "-c", "ls /tmp/ptrain-0-*", on=name).stdout
            self.assertIn("libtorch_cpu.so", listed)
        self.as_one("copied again", "cluster.local_copy=/tmp")
        for name in ("node1", "node2"):
            self.cluster.run("mkdir", "-p", "/tmp/small", on=name)
        self.cluster.run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/tmp/small", on="node2")
        said = self.as_one("not copied", "cluster.local_copy=/tmp/small")
        self.assertRegex(said, "warning: cluster.local_copy: node2: cannot copy .*No space left on device; "
                               "ranks start from")
        self.assertEqual(self.cluster.run("find", "/tmp/small", "-type", "f", "-size", "+0", on="node2").stdout, "")

    def test_two_runs_on_the_same_nodes_at_once(self):
        both = " & ".join(f"'{PTRAIN}' run recipe.yaml '{DP}' --directory 'at once {i}'" for i in (1, 2))
        self.cluster.run("salloc", "-Q", "-N2", "bash", "-c", f"{both} & wait", cwd=self.work, timeout=120,
                         environment=self.environment)
        for i in (1, 2):
            self.assertEqual(self.read(f"at once {i}", "verdict.json")["code"], 0)

    def test_dry_run_shows_srun(self):
        said = self.ptrain(4, "run", "recipe.yaml", "--dry-run")
        self.assertIn("SLURM_PMIX_FENCE=ring", said)
        self.assertRegex(said, "srun --mpi=pmix --kill-on-bad-exit=1 --nodes=4 --ntasks=4 ")
        self.assertNotIn("--cpu-bind", said)  # which this Slurm does not have, for want of a plugin

    def test_a_rank_dies(self):
        job = self.started("dies", 2, "run", "long.yaml", DP, ONCE)
        self.cluster.run("pkill", "-9", "-x", "ptrain", on="node2")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "11:0")
        verdict = self.read("dies", "verdict.json")
        self.assertEqual((verdict["rank"], verdict["signal"]), (1, signal.SIGKILL))
        until(self.no_rank_left, 20, "no rank is left")

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
        until(self.no_rank_left, 20, "no rank is left")

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
        until(self.no_rank_left, 20, "no rank is left")

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
