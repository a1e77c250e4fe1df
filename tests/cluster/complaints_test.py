"""What people report of other launchers (docs/complaints.md), played on the test cluster.

    complaints_test.py FOLDER PTRAIN FAKE     FOLDER: where states and results go; FAKE: a ptrain beside
                                              an engine without tensors (tests/launch/fake_engine.cc)

Ends with 77, and the reason, where no cluster can be started.
"""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from runs import DP, Runs, whole_lines  # noqa: E402

FOLDER, PTRAIN, FAKE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
ROOT = pathlib.Path(__file__).resolve().parents[2]
ONCE = "failure.max_restarts=0"
ENDLESS = "shapes.0.steps=1000000"
TOPOLOGY = ROOT / "tests/fixtures/cluster/four_nics.xml"


class Complaints(Runs):
    """With runs of the engine without tensors beside the real ones."""

    folder, binary = FOLDER, PTRAIN

    @classmethod
    def prepare(cls):
        cls.fake_bin = cls.work / "fake"
        shutil.copytree(FAKE.parent, cls.fake_bin)

    def fake(self, name, script, *more, nodes=2, environment=None, before=(), timeout=60):
        """Such a run in a job, to its end: (exit code, what it said)."""
        done = self.cluster.run(
            *before, "salloc", "-Q", f"-N{nodes}", self.fake_bin / "ptrain", "run", "recipe.yaml",
            f"parallel={{dp: {nodes}, shard: 1}}", *more, "--directory", name, cwd=self.work, check=False,
            timeout=timeout, environment=dict(self.environment, PTRAIN_FAKE=script, **(environment or {})))
        return done.returncode, done.stdout + done.stderr

    def fails(self, code, name, *arguments, **options):
        """One that ends with this code; its verdict."""
        ended, said = self.fake(name, *arguments, **options)
        self.assertEqual(ended, code, said)
        return self.read(name, "verdict.json")

    def login(self, *arguments, code=0, binary=None, environment=None):
        """A command on the login node, to its end; what it said."""
        done = self.cluster.run(binary or self.binary, *arguments, cwd=self.work, check=False, timeout=90,
                                environment=dict(self.environment, **(environment or {})))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def log(self, name, rank, attempt=1):
        return (self.work / name / "logs" / f"attempt-{attempt}" / f"rank-{rank}.log").read_text()

    def with_gpus(self):
        """Four GPUs on each node by a stand-in for nvidia-smi and a topology from a file, an engine for them,
        and a cluster file that names two: the environment with it."""
        tools = self.work / "gpu tools"
        tools.mkdir()
        buses = enumerate(("11", "21", "51", "61"))
        lines = "\n".join(f"echo '{i}, 00000000:{bus}:00.0, GPU-{i}, 81559'" for i, bus in buses)
        (tools / "nvidia-smi").write_text(f'#!/bin/bash\ncase "$*" in *pci.bus_id*)\n{lines};; '
                                          "*) printf '%s, 0, No\\n' 0 1 2 3;; esac\n")
        (tools / "nvidia-smi").chmod(0o755)
        shutil.copy(self.fake_bin / "libptrain_engine.so", self.fake_bin / "libptrain_engine_cuda.so")
        (self.work / "gpus.yaml").write_text("name: gpus\nnodes:\n" + "".join(
            f"  - {{name: g{i}, cores: 4, memory_gib: 4, gpus: 2, gpu_memory_gib: 80}}\n" for i in (1, 2)))
        return {"PATH": f"{tools}:{os.environ['PATH']}", "HWLOC_XMLFILE": str(TOPOLOGY),
                "PTRAIN_FAKE_SHOW": "CUDA_DEVICE_ORDER,CUDA_VISIBLE_DEVICES,UCX_NET_DEVICES,NCCL_SOCKET_IFNAME"}

    def nothing_is_left(self):
        until(self.no_rank_left, 20, "no rank is left")
        self.assertEqual(set(self.cluster.states().values()) - {"idle", "allocated", "mixed", "completing"},
                         set())


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
            self.assertEqual(again[0]["step"], done[-1])
            self.cluster.run(self.binary, "stop", self.work / name, on="node1")
            self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0")
            steps = [line["step"] for line in whole_lines(self.work / name / "metrics.jsonl")]
            self.assertEqual(steps, list(range(1, len(steps) + 1)))
            if begun[-1] > done[-1]:
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


class Places(Complaints):
    state = "state-places"

    def test_names_that_a_node_does_not_know(self):
        self.cluster.run("mount", "--bind", "/dev/null", "/etc/hosts", on="node3")
        self.assertEqual(self.fake("nameless", "", nodes=4)[0], 0)
        self.cluster.run("umount", "/etc/hosts", on="node3")
        self.cluster.run("mount", "--bind", "/dev/null", "/etc/hosts", on="head")
        code, said = self.fake("nameless head", "")
        self.cluster.run("umount", "/etc/hosts", on="head")
        self.assertEqual(code, 3, said)
        self.assertIn("the node node2 has no address here", said)

    def test_variables_and_secrets(self):
        value = "a \"b\" 'c' (d) [e] {f} $HOME `g` \\h;i&j|k<l>m*n?~ ü\t=,:\nlast"
        secret = "hf_SecretOfTheUser42"
        shown = {"PTRAIN_TEST_VALUE": value, "PTRAIN_FAKE_SHOW": "PTRAIN_TEST_VALUE", "HF_TOKEN": secret}
        run = self.cluster.popen("salloc", "-Q", "-N4", self.fake_bin / "ptrain", "run", "recipe.yaml", ENDLESS,
                                 "parallel={dp: 4, shard: 1}", "--directory", "shown", cwd=self.work,
                                 environment=dict(self.environment, **shown))
        until(lambda: self.events("shown", "shape_started"), 60, "it trains")
        for place in ("head", *self.cluster.nodes):
            self.assertNotIn(secret, self.cluster.run("ps", "-eo", "args=", on=place).stdout)
        self.cluster.run("pkill", "-INT", "-x", "ptrain")
        self.assertEqual(run.wait(60), 20)
        for rank in range(4):
            self.assertIn(f"PTRAIN_TEST_VALUE=[{value}]\n", self.log("shown", rank))
        for path in (self.work / "shown").rglob("*"):
            self.assertFalse(path.is_file() and secret.encode() in path.read_bytes(), path)
        for where in (["salloc", "-Q", "-N2"], []):
            dry = self.cluster.run(*where, PTRAIN, "run", "recipe.yaml", DP, *([] if where else ["-N2"]), "--dry-run",
                                   cwd=self.work, environment=dict(self.environment, **shown))
            self.assertNotIn(secret, dry.stdout + dry.stderr)

    def test_paths_with_quotes_and_letters_of_all_kinds(self):
        odd = self.work / "it's a \"räum\" $HOME (x2) 漢 #1"
        odd.mkdir()
        shutil.copytree(self.fake_bin, odd / "bin")
        shutil.copytree(self.work / "text", odd / "text")
        shutil.copy(self.work / "recipe.yaml", odd / "the recipe.yaml")
        for options, name in ((["-N2"], "a \"run\" of 'mine'"), (["-N2"], "not/there/yet")):
            done = self.cluster.run(odd / "bin/ptrain", "run", odd / "the recipe.yaml", DP, *options, "--directory",
                                    odd / name, cwd=odd, environment=self.environment, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue((odd / name / "verdict.json").exists())

    def test_the_dry_run_tells_all_and_per_node(self):
        both = ("-N2", "cluster.ranks_per_node=2", "--dry-run")
        said = self.login("run", "recipe.yaml", "parallel={dp: 4, shard: 1}", *both)
        self.assertIn("4 ranks on 2 nodes, 2 on each", said)
        self.assertIn("rank 3: any-2, ", said)
        said = self.login("run", "recipe.yaml", "parallel={dp: 8, shard: 1}", *both, code=2)
        self.assertIn("dp x shard is 8, but cluster.ranks_per_node is 2 on 2 nodes", said)
        said = self.ptrain(1, "run", "recipe.yaml", "parallel={dp: 8, shard: 1}", "cluster.ranks_per_node=2", "--dry-run", code=2)
        self.assertIn("8 does not divide the 2 ranks of this run", said)

    def test_programs_of_one_node_and_limits(self):
        tools = pathlib.Path(f"/tmp/ptrain-tools-{os.getpid()}")  # of the host and of head
        tools.mkdir()
        self.addCleanup(shutil.rmtree, tools)
        for name in ("srun", "scontrol", "salloc"):  # nodes have no such folder, and so no program
            (tools / name).symlink_to(shutil.which(name))
        code, said = self.fake("no path", "", before=["env", f"PATH={tools}"])
        self.assertEqual(code, 0, said)
        code, said = self.fake("few files", "", before=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"])
        self.assertEqual(code, 3)
        self.assertIn("a process may open 64 files here, but starting 2 ranks takes 66", said)

    def test_read_only_variables(self):
        readonly = "cluster.setup=['readonly HOME PATH LANG TMPDIR=/tmp; export TMPDIR']"
        self.login("run", "recipe.yaml", "-N2", DP, readonly, "--directory", "readonly")
        self.assertEqual(self.read("readonly", "verdict.json")["code"], 0)

    def test_a_node_that_never_comes(self):
        go = self.work / "go"
        command = f"while [ ! -e go ]; do sleep 0.05; done; exec '{self.fake_bin}/ptrain' run recipe.yaml '{DP}' " \
                  "--directory gone"
        with open(self.work / "gone.out", "wb") as said:
            run = self.cluster.popen("salloc", "-Q", "-N2", "bash", "-c", command, cwd=self.work,
                                     environment=self.environment, stderr=said)
        until(lambda: self.cluster.run("squeue", "-h", "-t", "running", "-o", "%A").stdout, 20, "the job runs")
        self.cluster.cut("node2")
        begin = time.monotonic()
        go.touch()
        self.assertEqual(run.wait(90), 3)
        print(f"a node that never comes: named after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertIn("node2: does not answer", (self.work / "gone.out").read_text())

    def test_two_networks(self):
        """One of containers, alike on all nodes, and one of their own beside the one by their names."""
        for name in ("head", *self.cluster.nodes):
            for device in ("storage0", "docker0"):
                self.addCleanup(self.cluster.run, "ip", "link", "delete", device, on=name)
            self.cluster.add_network(name, "storage0", "10.9.0.")
            self.cluster.run("ip", "link", "add", "docker0", "type", "bridge", on=name)
            self.cluster.run("ip", "address", "add", "172.17.0.1/16", "dev", "docker0", on=name)
            self.cluster.run("ip", "link", "set", "docker0", "up", on=name)
        self.ptrain(2, "run", "recipe.yaml", DP, "--directory", "by name")
        self.assertIn("OMPI_MCA_btl_tcp_if_include=eth0", self.log("by name", 1))
        used = self.cluster.bytes_on("node1", "storage0")
        self.ptrain(2, "run", "recipe.yaml", DP, "cluster.interface=storage0", "--directory", "by storage")
        self.assertIn("OMPI_MCA_btl_tcp_if_include=storage0", self.log("by storage", 1))
        self.assertEqual(self.losses("by storage"), self.losses("by name"))
        self.assertGreater(self.cluster.bytes_on("node1", "storage0") - used, 8 << 20)  # the ring alone sends 4 MiB each way
        code, said = self.fake("no such", "", "cluster.interface=ib7")
        self.assertEqual(code, 3)
        self.assertIn("this machine has no 'ib7'", said)
        self.assertIn("storage0 (10.9.0.254)", said)

    def test_gpus_and_nics_of_ranks(self):
        environment = dict(self.with_gpus(), CUDA_VISIBLE_DEVICES="3,1")
        wanted = ("parallel={dp: 4, shard: 1}", "cluster.file=gpus.yaml")
        dry = self.cluster.run("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", *wanted, "--dry-run",
                               cwd=self.work, environment=dict(self.environment, **environment)).stdout
        self.assertIn("rank 0: node1, core 0, GPU 3 (0000:61:00.0), NIC mlx5_3\n", dry)
        self.assertIn("rank 3: node2, core 1, GPU 1 (0000:21:00.0), NIC mlx5_1\n", dry)
        self.assertIn(" --gpu-bind=none ", dry)
        done = self.cluster.run("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", *wanted,
                                "--directory", "gpus", cwd=self.work, check=False,
                                environment=dict(self.environment, **environment))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in range(4):
            nic = ("mlx5_3", "mlx5_1")[rank % 2]
            for part in ("CUDA_DEVICE_ORDER=[PCI_BUS_ID]", "CUDA_VISIBLE_DEVICES=[3,1]", f"UCX_NET_DEVICES=[{nic}:1]",
                         "NCCL_SOCKET_IFNAME=[=eth0]"):
                self.assertIn(part, self.log("gpus", rank))


class Gpus(Complaints):
    """Slurm counts GPUs and gives them to jobs; ranks use the engine without tensors."""
    state = "state-gpus"
    gpus = 2

    def run_fake(self, gpus_per_node, *arguments, code=0):
        return self.login("run", "recipe.yaml", "-N2", f"--gpus-per-node={gpus_per_node}", "cluster.file=gpus.yaml",
                          "parallel={dp: 4, shard: 1}", *arguments, code=code, binary=self.fake_bin / "ptrain",
                          environment=self.environment_with_gpus)

    def test_a_job_of_nodes_with_gpus(self):
        self.environment_with_gpus = self.with_gpus()
        dry = self.run_fake(2, "--dry-run")
        for part in ("#SBATCH --gpus-per-node=2\n", "rank 3: g2, core 1, GPU 1\n"):
            self.assertIn(part, dry)
        self.assertIn("1 for 2 ranks of a node", self.run_fake(1, "--directory", "few", code=2))
        self.assertIn("no nodes with as many GPUs", self.run_fake(3, "--directory", "many", code=3))
        self.run_fake(2, "--directory", "gpu job")
        self.assertEqual(self.read("gpu job", "verdict.json")["code"], 0)
        shown = self.cluster.run("scontrol", "show", "job", self.read("gpu job", "job.json")["job"]).stdout
        self.assertIn("TresPerNode=gres:gpu:2", shown)
        for rank in range(4):
            for part in (f"GPU {rank % 2} (0000:{('11', '21')[rank % 2]}:00.0)", "CUDA_VISIBLE_DEVICES=[]"):  # all
                self.assertIn(part, self.log("gpu job", rank))


class Recipes(Complaints):
    """Each is refused on the login node, before the queue, with its place."""
    state = "state-recipes"

    def variant(self, old, new):
        text = (self.work / "recipe.yaml").read_text()
        self.assertIn(old, text)
        (self.work / "variant.yaml").write_text(text.replace(old, new))

    def refused(self, old, new, *says):
        self.variant(old, new)
        said = self.login("run", "variant.yaml", "-N2", "--directory", "refused", code=2)
        line = (self.work / "variant.yaml").read_text().partition(new)[0].count("\n") + 1 + new.strip("\n").count("\n")
        self.assertRegex(said, rf"variant\.yaml:{line}(:|\b)")
        for part in says:
            self.assertIn(part, said)
        self.assertFalse((self.work / "refused").exists())
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")

    def test_keys(self):
        self.refused("learning_rate:", "lerning_rate:", "did you mean 'learning_rate'?")
        self.refused("{every_steps: 10}", "{evry_steps: 10}", "did you mean 'every_steps'?")
        self.refused("warmup_steps: 5", "warmup_step: 5", "did you mean 'warmup_steps'?")
        self.refused("precision: fp32\n", "precision: fp32\nprecision: fp32\n", "precision")
        self.refused("{peak: 3e-3,", "{peak: 3e-3, peak: 3e-3,", "peak")

    def test_numbers_and_booleans(self):
        for text in ("1e-3", ".001", "0.001", "1.0E-3"):
            self.variant("peak: 3e-3", f"peak: {text}")
            self.login("run", "variant.yaml", "-N2", DP, "--dry-run")
        for text in ("1_000", "010", "1:30", "4k", "'5'", "5%"):
            self.refused("warmup_steps: 5", f"warmup_steps: {text}", "warmup_steps")
        for text in ("no", "off"):
            self.refused("precision: fp32", f"precision: {text}", "precision")
        for text in ("yes", "1", "FALSE", "'true'"):
            self.refused("num_hidden_layers: 2", f"tie_word_embeddings: {text}, num_hidden_layers: 2", "tie_word_embeddings")

    def test_overrides(self):
        name = "a=b%c@d#e"
        self.login("run", "recipe.yaml", "-N2", DP, f"cluster.slurm.comment={name}", "--directory", "overrides")
        shown = self.cluster.run("scontrol", "show", "job", self.read("overrides", "job.json")["job"]).stdout
        self.assertIn(f"Comment={name}", shown)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
