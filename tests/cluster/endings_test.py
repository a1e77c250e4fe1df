"""What people report of how runs end (docs/complaints.md), played on the test cluster.

    endings_test.py FOLDER PTRAIN FAKE     FOLDER: where states and results go; FAKE: a ptrain beside
                                         an engine without tensors (tests/launch/fake_engine.cc)

Ends with 77, and the reason, where no cluster can be started.
"""

import concurrent.futures
import os
import pathlib
import signal
import sys
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from fake_runs import FakeRuns  # noqa: E402
from runs import DP, whole_lines  # noqa: E402

FOLDER, PTRAIN, FAKE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
ONCE = "failure.max_restarts=0"
ENDLESS = "shapes.0.steps=1000000"


class Complaints(FakeRuns):
    folder, binary, fake_ptrain = FOLDER, PTRAIN, FAKE


class Deaths(Complaints):
    state = "state-deaths"

    # What rank 1 does at its fifth step, and the verdict: code, signal.
    WAYS = {"exit1": (1, 0), "exit42": (10, 0), "exit3": (3, 0), "exit137": (10, 0), "exit0": (10, 0), "error": (16, 0),
            "oom": (12, 0), "raise4": (11, signal.SIGILL), "raise6": (11, signal.SIGABRT),
            "raise7": (11, signal.SIGBUS), "raise8": (11, signal.SIGFPE), "segv": (11, signal.SIGSEGV),
            "kill": (11, signal.SIGKILL)}

    def dies(self, way):
        return way, self.fake(way, f"1:{way}@5", ONCE), self.read(way, "verdict.json")

    def test_every_way_of_dying_is_a_failure(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(self.dies, self.WAYS))
        for way, (code, said), verdict in results:
            with self.subTest(way=way):
                self.assertEqual((verdict["code"], verdict["signal"]), self.WAYS[way], said)
                self.assertEqual((code, verdict["rank"], len(verdict["nodes"])), (verdict["code"], 1, 1), said)
                started, = self.events(way, "shape_started")
                ended, = self.events(way, "attempt_ended")
                self.assertLess(ended["mono_s"] - started["mono_s"], 20)  # under a second
        self.assertIn("exited with code 137", self.read("exit137", "verdict.json")["reason"])
        self.assertEqual(self.read("kill", "verdict.json")["reason"], "rank 1: killed by signal 9 (Killed)")
        self.nothing_is_left()

    def test_one_throws_while_others_wait_or_are_deaf(self):
        verdict = self.fails(16, "throws", "1:error@5,0:deaf@5,2:stall@5,3:lag@5", ONCE, nodes=4)
        self.assertEqual((verdict["rank"], verdict["nodes"]), (1, ["node2"]))
        verdict = self.fails(1, "sleeps", "2:exit1@5,0:stall@5,1:stall@5,3:stall@5", ONCE, nodes=4)
        self.assertEqual((verdict["rank"], verdict["nodes"]), (2, ["node3"]))
        self.nothing_is_left()

    def test_last_words_are_quoted(self):
        _, said = self.fake("quoted", "1:error@5", ONCE)
        self.assertIn("  | fake: error: the loss is not a number", said)
        self.assertIn("quoted/logs/attempt-1/rank-1.log", said)
        self.assertNotIn("rank-0.log", said)

    def test_a_hang_is_named(self):
        verdict = self.fails(13, "hangs", "1:lag@15", ONCE, "failure.hang_timeout=2")
        self.assertEqual(verdict["rank"], 1)
        self.assertIn("all_reduce#", verdict["reason"])
        for rank in range(2):  # before they were killed
            self.assertIn("-- thread ", self.log("hangs", rank))

    def test_helpers_that_are_deaf_to_term(self):
        """Gone before Slurm would give up on them and drain the node (KillWait)."""
        for name, script, code in (("helped", "1:helper@3,0:helper@4", 0), ("helpless", "1:helper@3,0:kill@5", 11)):
            self.assertEqual(self.fake(name, script, ONCE)[0], code)
            self.assertIn("fake: helper", self.log(name, 1))
            until(self.no_rank_left, 5, "helpers are gone")
        self.nothing_is_left()

    def test_a_crash_loop_ends_and_is_not_requeued(self):
        code, arguments = 22, ("-N2", "checkpoint.every_steps=10", "parallel={dp: 2, shard: 1}")
        loop = {"PTRAIN_FAKE": "0:kill@7"}
        self.login("run", "recipe.yaml", *arguments, "--directory", "loop", code=code, environment=loop,
                   binary=self.fake_bin / "ptrain")
        job = self.cluster.job(self.read("loop", "job.json")["job"])
        self.assertEqual((job["JobState"], job["ExitCode"], job["Restarts"]), ("FAILED", "22:0", "0"))
        self.assertLessEqual(len(self.events("loop", "attempt_started")), 3)
        verdict = self.fails(11, "once more", "0:kill@7", "failure.max_restarts=1")
        self.assertEqual(verdict["attempt"], 2)
        verdict = self.fails(11, "never", "0:kill@7", ONCE)
        self.assertEqual(verdict["attempt"], 1)

    def test_want_of_memory_needs_evidence(self):
        """The kernel kills a rank on the supervisor's node, in a group of that node."""
        memory = pathlib.Path("/sys/fs/cgroup/memory")
        group = memory / f"ptrain-complaints-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no memory control group of version 1 can be made here: {error}")
        self.addCleanup(lambda: until(lambda: remove(group), 20, f"{group} is empty"))
        slurmd = int((self.cluster.folder / "node1" / "slurmd.pid").read_text())
        (group / "cgroup.procs").write_text(str(self.cluster.host_process("node1", slurmd)))
        self.addCleanup(lambda: [(memory / "cgroup.procs").write_text(pid)
                                 for pid in (group / "cgroup.procs").read_text().split()])
        job = self.started("eats", 2, "run", "long.yaml", DP, ONCE)
        used = int((group / "memory.usage_in_bytes").read_text())
        (group / "memory.limit_in_bytes").write_text(str(used + (32 << 20)))
        glutton = "import sys; open(sys.argv[1], 'w').write('0'); x = bytearray(96 << 20)"
        eater = concurrent.futures.ThreadPoolExecutor(1).submit(
            os.spawnlp, os.P_WAIT, sys.executable, sys.executable, "-c", glutton, str(group / "cgroup.procs"))
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "12:0")
        (group / "memory.limit_in_bytes").write_text(str(1 << 40))
        eater.result(60)
        self.assertIn("killed for want of memory in this job's control group",
                      self.read("eats", "verdict.json")["reason"])


def remove(group):
    try:
        group.rmdir()
    except OSError:
        pass
    return not group.exists()


class Ends(Complaints):
    state = "state-ends"

    def test_interrupts_hangups_and_a_killed_launcher(self):
        # salloc ends with 0 when its command was killed.
        for signals, codes in ((["INT"], [20]), (["INT", "INT"], [130]), (["HUP"], [21]), (["KILL"], [0])):
            name = " ".join(signals)
            with open(self.work / f"{name}.out", "wb") as said:
                run = self.cluster.popen("salloc", "-Q", "-N2", PTRAIN, "run", "long.yaml", DP, "--directory", name,
                                         cwd=self.work, environment=self.environment, stderr=said)
            until(lambda: self.num_steps(name) > 10, 60, "it trains")
            for one in signals:
                self.cluster.run("pkill", f"-{one}", "-x", "ptrain")
            self.assertIn(run.wait(60), codes, (self.work / f"{name}.out").read_text())
            if codes[0] in (20, 21):
                verdict = self.read(name, "verdict.json")
                self.assertTrue((self.work / name / f"checkpoints/step-{verdict['step']:08}").is_dir())
            self.nothing_is_left()
            for node in ("node1", "node2"):
                until(lambda node=node: self.cluster.run("find", "/dev/shm", "-type", "f", on=node).stdout == "", 20,
                      f"no shared memory is left on {node} after {name}")

    def test_the_tail_of_the_log_outlives_a_stop(self):
        talks = dict(self.environment, PTRAIN_FAKE_TALK="1", PTRAIN_FAKE_STEP_MS="1")
        run = self.cluster.popen("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", DP, ENDLESS,
                                 "--directory", "tail", cwd=self.work, environment=talks)
        until(lambda: self.events("tail", "shape_started"), 60, "it trains")
        self.cluster.run("pkill", "-INT", "-x", "ptrain")
        self.assertEqual(run.wait(60), 20)
        step = self.read("tail", "verdict.json")["step"]
        for rank in range(2):
            self.assertTrue(self.log("tail", rank).endswith(f"step {step} is done\nand half a li"))

    def test_a_finished_run_does_not_start_again(self):
        self.login("run", "recipe.yaml", "-N2", DP, "--directory", "finished")
        before = (self.work / "finished" / "metrics.jsonl").read_bytes()
        self.cluster.run("sbatch", "--wait", "finished/job.sh", cwd=self.work, environment=self.environment)
        self.login("resume", "finished")
        self.assertEqual((self.work / "finished" / "metrics.jsonl").read_bytes(), before)
        self.assertEqual(len({event["attempt"] for event in self.events("finished", "attempt_started")}),
                         self.read("finished", "verdict.json")["attempt"])

    def test_a_daemon_of_mpirun_is_killed(self):
        run = self.cluster.popen("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", DP, ENDLESS, ONCE,
                                 "cluster.launcher=mpirun", "--directory", "daemon", cwd=self.work,
                                 environment=self.environment)
        until(lambda: self.events("daemon", "shape_started"), 60, "it trains")
        self.cluster.run("pkill", "-9", "-x", "orted", on="node2")
        self.assertNotEqual(run.wait(60), 0)
        verdict = self.read("daemon", "verdict.json")
        self.assertEqual(verdict["nodes"], ["node2"], verdict)
        self.nothing_is_left()

    def test_ranks_killed_while_they_write_a_checkpoint(self):
        """The one before is what training goes on from."""
        for name in ("written 1", "written 2", "written 3", "written 4", "written 5"):
            job = self.started(name, 2, "run", "long.yaml", DP, "checkpoint.every_steps=2",
                               "learning_rate.decay=constant")
            ranks = [pid for node in ("node1", "node2") for pid in self.cluster.host_processes(node, b"worker")]
            self.assertEqual(len(ranks), 2)
            checkpoints = self.work / name / "checkpoints"
            until(lambda: any(entry.startswith(".tmp-") for entry in os.listdir(checkpoints)), 60, "it saves")
            for pid in ranks:
                os.kill(pid, signal.SIGKILL)
            until(lambda: self.events(name, "attempt_ended"), 60, "a verdict")
            begun = [event["step"] for event in self.events(name, "checkpoint_started") if event["attempt"] == 1]
            done = [event["step"] for event in self.events(name, "checkpoint_published") if event["attempt"] == 1]
            again = until(lambda: [event for event in self.events(name, "shape_started") if event["attempt"] == 2],
                          60, "it goes on")
            saved = again[0]["step"]
            self.assertIn(saved, (done[-1], begun[-1]))  # the last may be there without a word of it
            self.cluster.run(self.binary, "stop", self.work / name, on="node1")
            self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")
            steps = [line["step"] for line in whole_lines(self.work / name / "metrics.jsonl")]
            self.assertEqual(steps, list(range(1, len(steps) + 1)))
            if begun[-1] > saved:
                return
        self.fail("in five runs no rank was killed within a save")

    def test_damaged_checkpoints_are_passed_over(self):
        job = self.started("damaged", 2, "run", "long.yaml", DP, "checkpoint={every_steps: 5, keep: 9}")
        self.cluster.run(self.binary, "stop", self.work / "damaged", on="node1")
        self.cluster.wait(job)
        folders = sorted((self.work / "damaged" / "checkpoints").glob("step-*"))
        self.assertGreater(len(folders), 4)
        good, short, bare, empty, lost = folders[-5:]
        shard = next(short.glob("*.distcp"))
        os.truncate(shard, shard.stat().st_size // 2)
        (bare / ".metadata").unlink()
        os.truncate(next(empty.glob("*.distcp")), 0)
        next(lost.glob("*.distcp")).unlink()
        job = self.cluster.submit(f"'{PTRAIN}' resume damaged", "-N2", f"--output={self.work}/damaged.out",
                                  cwd=self.work)
        begun = until(lambda: [event for event in self.events("damaged", "shape_started") if event["attempt"] == 2],
                      60, "it goes on")
        self.assertEqual(begun[0]["step"], int(good.name[5:]))
        told = " ".join(event["message"] for event in self.events("damaged", "warning"))
        for folder in (short, bare, empty, lost):
            self.assertIn(folder.name, told)
        self.cluster.run(self.binary, "stop", self.work / "damaged", on="node1")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
