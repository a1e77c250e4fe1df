"""The test cluster itself: a real Slurm, its faults, and that nothing of it stays.

    cluster_test.py FOLDER RANKS     FOLDER: where states and results go; RANKS: ranks.cc, built

Ends with 77, and the reason, where no cluster can be started.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import Cluster, ClusterError, until, why_not  # noqa: E402

FOLDER, RANKS = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "cluster"
MPI = ("srun", "-Q", "-N4", "--ntasks-per-node=1", "--mpi=pmix", "--kill-on-bad-exit=1")


def clusters():
    """Numbers of all processes that belong to a cluster of this test."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(FOLDER / "state").encode() in path.read_bytes():
                found.append(int(path.parts[2]))
        except OSError:
            pass
    return [number for number in found if number != os.getpid()]


def namespaces_of(number):
    try:
        return {os.readlink(path) for path in pathlib.Path(f"/proc/{number}/ns").iterdir()}
    except OSError:
        return set()


def inhabited(namespaces):
    """Processes in any of them."""
    numbers = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if namespaces_of(number) & namespaces]


def host():
    """What a cluster could leave on the host."""
    links = sorted(path.name for path in pathlib.Path("/sys/class/net").iterdir())
    return links, pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8")


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = host()
        cls.neighbour = Cluster(FOLDER / "state-neighbour", visible=[FOLDER])
        cls.neighbour.up(num_nodes=1)
        cls.addClassCleanup(cls.neighbour.down)
        cls.work = FOLDER / "work"
        shutil.rmtree(cls.work, ignore_errors=True)
        cls.work.mkdir()
        # Goes on while the other tests run. Slurm looks every 30 s whose time is up or nearly up.
        cls.limited = cls.neighbour.submit(
            "trap 'echo USR1' USR1\nscontrol update job=$SLURM_JOB_ID EndTime=now+31\necho begin\nsleep 300 & wait\nwait\n",
            "--time=10", "--signal=B:USR1@20", f"--output={cls.work}/limited")
        cls.cluster = Cluster(FOLDER / "state", visible=[FOLDER, RANKS.parent])
        begin = time.monotonic()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(node_timeout=5)
        cls.seconds = time.monotonic() - begin

    def tearDown(self):
        for name in self.cluster.nodes:
            self.cluster.restore(name)
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_for_nodes()

    def start(self, *command):
        """A command on head that goes on; ended with the test."""
        process = self.cluster.popen(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self.addCleanup(end)
        return process

    def running_step(self, seconds):
        """Four ranks, on four nodes, that sum."""
        process = self.start(*MPI, RANKS, "sum", seconds)
        until(lambda: self.cluster.run("squeue", "-h", "-s", "-o", "%N").stdout.split()
              == ["node[1-4]"], 20, "the step runs")
        until(lambda: all(map(self.has_rank, self.cluster.nodes)), 20, "ranks run")
        return process

    def has_rank(self, node):
        found = self.cluster.run("pgrep", "-x", RANKS.name[:15], on=node, check=False)
        return found.returncode == 0

    def test_four_nodes_at_once(self):
        print(f"four nodes idle after {self.seconds:.2f} s", file=sys.stderr)
        self.assertLess(self.seconds, 10)
        self.assertEqual(self.cluster.states(), {f"node{i}": "idle" for i in range(1, 5)})

    def test_ranks_of_mpi(self):
        said = self.cluster.run(*MPI, RANKS).stdout.splitlines()
        self.assertEqual(sorted(said), [f"{i} 4 node{i + 1}" for i in range(4)])
        said = self.cluster.run("srun", "-Q", "-N2", "--ntasks-per-node=2", RANKS).stdout
        self.assertEqual(sorted(said.splitlines()),
                         ["0 4 node1", "1 4 node1", "2 4 node2", "3 4 node2"])

    def test_nodes_share_files_but_not_tmp(self):
        for folder in ("/tmp", "/dev/shm"):
            path = f"{folder}/of-node1-{os.getpid()}"
            self.cluster.run("touch", path, on="node1")
            self.assertFalse(pathlib.Path(path).exists())
            self.assertNotEqual(self.cluster.run("ls", path, on="node2", check=False).returncode, 0)
        self.cluster.run("touch", self.work / "ours", on="node1")
        self.cluster.run("ls", self.work / "ours", on="node2")

    def test_what_was_left_behind_is_reaped(self):
        self.cluster.run("sh", "-c", "(sleep 0.1 &)", on="node1")
        time.sleep(0.3)
        self.assertNotIn("Z", self.cluster.run("ps", "-eo", "stat=", on="node1").stdout)

    def test_batch_jobs(self):
        job = self.cluster.submit("srun hostname; sleep 1", "-N2", f"--output={self.work}/good")
        self.assertIn(self.state(job), ("PENDING", "RUNNING"))
        self.assertEqual(self.cluster.wait(job)["JobState"], "COMPLETED")
        self.assertEqual(sorted((self.work / "good").read_text().split()), ["node1", "node2"])
        job = self.cluster.submit("exit 3", "--output=/dev/null")
        failed = self.cluster.wait(job)
        self.assertEqual((failed["JobState"], failed["ExitCode"]), ("FAILED", "3:0"))
        until(lambda: self.state(job) == "", 10, "squeue forgets what has ended")
        job = self.cluster.submit("sleep 100", "--output=/dev/null")
        self.cluster.wait(job, "RUNNING")
        self.cluster.run("scancel", job)
        self.assertEqual(self.cluster.wait(job)["JobState"], "CANCELLED")

    def state(self, job):
        return self.cluster.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip()

    def test_slurmd_killed(self):
        step = self.running_step(100)
        self.cluster.kill_slurmd("node3")
        time.sleep(0.5)
        self.assertTrue(self.has_rank("node3"), "its jobs go on until the node counts as down")
        self.cluster.wait_for_nodes("down*", ["node3"], seconds=60)
        self.assertNotEqual(step.wait(30), 0)
        self.cluster.restore("node3")
        self.cluster.wait_for_nodes()

    def test_node_killed(self):
        step = self.running_step(100)
        self.cluster.kill_node("node2")
        output, _ = step.communicate(timeout=60)
        self.assertNotEqual(step.returncode, 0)
        self.assertIn("node2", output)
        self.cluster.run("true", on="node1")
        with self.assertRaisesRegex(ClusterError, "machine node2 is off"):
            self.cluster.run("true", on="node2")
        self.cluster.restore("node2")
        self.cluster.wait_for_nodes()
        self.cluster.run(*MPI, RANKS)

    def test_cable_pulled_for_a_moment(self):
        step = self.running_step(6)
        self.cluster.cut("node4")
        self.assertNotEqual(self.ping().returncode, 0)
        time.sleep(1)
        self.cluster.restore("node4")
        output, _ = step.communicate(timeout=60)
        self.assertEqual(step.returncode, 0, output)
        self.assertIn("sums", output)
        self.assertEqual(self.ping().returncode, 0)

    def ping(self):
        connect = "import socket; socket.create_connection(('node4', 6818), 1)"
        return self.cluster.run("python3", "-c", connect, on="node1", check=False)

    def test_slow_link(self):
        def rate(megabytes):
            said = self.cluster.run(*MPI, RANKS, "rate", megabytes).stdout
            return float(said.split()[1])
        full = rate(40)
        self.cluster.slow("node4", 80)
        slowed = rate(4)
        print(f"from node1 to node4: {full:.0f}, slowed to 80: {slowed:.1f} Mbit/s", file=sys.stderr)
        self.assertGreater(full, 160)
        self.assertLess(slowed, 96)   # what the burst adds
        self.assertGreater(slowed, 40)

    def test_requeue(self):
        output = self.work / "requeued"
        script = "echo start ${SLURM_RESTART_COUNT:-0}\n[ $SLURM_RESTART_COUNT ] || sleep 100"
        job = self.cluster.submit(script, "--requeue", "--open-mode=append", f"--output={output}")
        until(lambda: output.exists() and output.read_text() == "start 0\n", 20, "it starts")
        self.cluster.run("scontrol", "requeue", job)
        self.assertEqual(self.cluster.wait(job, "COMPLETED")["Restarts"], "1")
        self.assertEqual(output.read_text().splitlines()[-1], "start 1")

    def test_command_for_people(self):
        def script(*words, **options):
            return subprocess.run([SCRIPT, "--folder", FOLDER / "state-people", *words], text=True,
                                  capture_output=True, timeout=60, check=False, **options)
        self.addCleanup(script, "down")
        self.assertIn("no cluster in", script("shell", "true").stderr)
        self.assertEqual(script("up", "--nodes", "2").returncode, 0)
        self.assertEqual(sorted(script("shell", "srun", "-Q", "-N2", "hostname").stdout.split()),
                         ["node1", "node2"])
        self.assertEqual(script("shell", "sh", "-c", "exit 5").returncode, 5)
        self.assertIn("no node node3", script("cut", "node3").stderr)
        for words in (["kill", "node1"], ["cut", "node2"], ["slow", "node2", "50"],
                      ["restore", "node1"], ["restore", "node2"]):
            self.assertEqual(script(*words).returncode, 0, words)
        self.assertEqual(script("shell", "srun", "-Q", "-N2", "true").returncode, 0)
        nobody = script("up", user=65534)
        self.assertIn("needs root", nobody.stderr)
        self.assertEqual(script("down").returncode, 0)

    def test_killed_while_it_starts(self):
        draw = random.Random(1)
        crashed = Cluster(FOLDER / "state-crashed")
        self.addCleanup(crashed.down)
        for _ in range(6):
            process = subprocess.Popen([SCRIPT, "--folder", crashed.folder, "up"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.1, 0.8))
            process.kill()
            process.wait()
        crashed.up(num_nodes=2)
        self.assertEqual(crashed.run("srun", "-Q", "-N2", "true").returncode, 0)
        ours = [number for number in clusters()
                if str(crashed.folder) in pathlib.Path(f"/proc/{number}/cmdline").read_text()]
        self.assertEqual(len(ours), 2 * 4, "unshare and machine.sh of head, switch and two nodes")

    def test_not_in_a_folder_with_other_files(self):
        (self.work / "precious").write_text("1")
        for action in (Cluster(self.work).up, Cluster(self.work).down):
            with self.assertRaisesRegex(ClusterError, "holds other files"):
                action()
        self.assertTrue((self.work / "precious").exists())

    def test_down_leaves_nothing(self):
        """Of a cluster with jobs and faults; the neighbours live on."""
        ended = Cluster(FOLDER / "state-ended", visible=[FOLDER])
        self.addCleanup(ended.down)
        ended.up(num_nodes=2)
        ours = namespaces_of(os.getpid())
        theirs = set()
        for machine in (ended.head, ended.network.switch, *map(ended._node, ended.nodes)):
            theirs |= namespaces_of(machine.process()) - ours
        ended.submit("sleep 100", "-N2", "--output=/dev/null")
        ended.cut("node1")
        ended.kill_slurmd("node2")
        self.assertGreater(len(inhabited(theirs)), 8)
        self.assertEqual(host(), self.host, "nothing on the host even while it runs")
        ended.down()
        until(lambda: not inhabited(theirs), 5, "its namespaces are gone")
        self.assertEqual([path.name for path in ended.folder.iterdir()], ["lock"])
        self.assertEqual(host(), self.host)
        self.assertEqual(self.cluster.run("srun", "-Q", "-N4", "true").returncode, 0)

    def test_time_limit(self):
        self.assertEqual(self.neighbour.states().keys(), {"node1"})
        job = self.neighbour.wait(self.limited, seconds=120)
        self.assertEqual(job["JobState"], "TIMEOUT")
        self.assertEqual((self.work / "limited").read_text().split()[:2], ["begin", "USR1"])


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
