"""What ranks find where they are started, on the test cluster: cores, plugins and nodes that are not as Slurm says.

    start_test.py FOLDER PTRAIN FAKE     FOLDER: where states and results go; FAKE: a ptrain beside
                                       an engine without tensors (tests/launch/fake_engine.cc)

Ends with 77, and the reason, where no cluster can be started.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from fake_runs import FakeRuns  # noqa: E402
from runs import DP  # noqa: E402

FOLDER, PTRAIN, FAKE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
ENDLESS = "shapes.0.steps=1000000"
ROWS = ("shapes.0.global_batch_tokens=288", "shapes.1.global_batch_tokens=576")  # that divide over 2, 3 and 4
SRUN = shutil.which("srun")


class Starts(FakeRuns):
    folder, binary, fake_ptrain = FOLDER, PTRAIN, FAKE
    batch_options = ("--exclusive", *FakeRuns.batch_options)

    def tool(self, folder, name, script):
        """A program of ours that is found before the others of PATH: the environment with it."""
        tools = self.work / folder
        tools.mkdir(exist_ok=True)
        (tools / name).write_text("#!/bin/bash\n" + script)
        (tools / name).chmod(0o755)
        return {"PATH": f"{tools}:{os.environ['PATH']}"}

    def job(self, name, num_nodes, *arguments, first=""):
        """A run of the engine without tensors in a batch job, after some lines of shell: its number."""
        words = (self.fake_bin / "ptrain", "run", "recipe.yaml", *arguments, "--directory", name)
        return self.cluster.submit(first + "\nexec " + " ".join(f"'{word}'" for word in words), f"-N{num_nodes}",
                                   *self.batch_options, f"--output={self.work}/{name}.out", cwd=self.work)

    def trains(self, name, attempt=1):
        """Until all ranks of this attempt are there; their hosts."""
        def hosts():
            ready = [event["host"] for event in self.events(name, "rank_ready") if event["attempt"] == attempt]
            started = [event["num_ranks"] for event in self.events(name, "attempt_started")
                       if event["attempt"] == attempt]
            return set(ready) if started == [len(ready)] else None
        return until(hosts, 60, f"attempt {attempt} of {name} trains")

    def stop(self, job, name):
        self.cluster.run(self.binary, "stop", self.work / name, on="node1")
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "20:0", (self.work / f"{name}.out").read_text())


class Bound(Starts):
    """Tasks are bound to the cores of this machine, which each node has."""
    state = "state-bound"
    machines = {"num_nodes": 2, "cores": 2, "binds": True}

    def processes(self):
        """(node, rank) -> number of its process on the host."""
        found = {}
        for node in self.cluster.nodes:
            for process in self.cluster.host_processes(node, b"worker"):
                environment = pathlib.Path(f"/proc/{process}/environ").read_bytes().decode()
                found[node, int(re.search(r"\0PMIX_RANK=(\d+)\0", environment).group(1))] = process
        return found

    def real_cpus(self):
        """(node, rank) -> CPUs that its process may run on, as the kernel lists them."""
        def cpus(process):
            status = pathlib.Path(f"/proc/{process}/status").read_text()
            return re.search(r"Cpus_allowed_list:\t(.*)", status).group(1)
        return {place: cpus(process) for place, process in self.processes().items()}

    def bound(self, name, *arguments):
        """Where the printed map has the ranks of a run on two nodes, and where they are: (node, rank) -> CPUs."""
        dry = self.cluster.run("salloc", "-Q", "-N2", "--exclusive", self.fake_bin / "ptrain", "run", "recipe.yaml",
                               *arguments, "--dry-run", cwd=self.work, environment=self.environment).stdout
        self.assertIn(" --cpu-bind=cores ", dry)
        lines = re.findall(r"  rank (\d+): (\w+), cores? ([\d-]+)", dry)
        job = self.job(name, 2, *arguments, ENDLESS)
        self.trains(name)
        real = self.real_cpus()
        told = {(event["host"], event["rank"]): event["cpus"] for event in self.events(name, "rank_ready")}
        self.assertEqual(told, real)
        self.assertEqual(self.events(name, "warning"), [])
        self.stop(job, name)
        return {(node, int(rank)): cores for rank, node, cores in lines}, real

    def test_ranks_have_the_cores_that_the_map_names(self):
        planned, real = self.bound("four", "parallel={dp: 4, shard: 1}")
        self.assertEqual(planned, {("node1", 0): "0", ("node1", 1): "1", ("node2", 2): "0", ("node2", 3): "1"})
        self.assertEqual(real, planned)

    def test_a_rank_with_threads_has_a_core_for_each(self):
        planned, real = self.bound("two", "cluster.ranks_per_node=1", "parallel={dp: 2, shard: 1}")
        self.assertEqual(planned, {("node1", 0): "0-1", ("node2", 1): "0-1"})
        self.assertEqual(real, planned)

    def test_daemons_of_mpirun_leave_ranks_all_cores(self):
        job = self.job("by mpirun", 2, "parallel={dp: 4, shard: 1}", "cluster.launcher=mpirun", ENDLESS)
        self.trains("by mpirun")
        self.assertEqual(set(self.real_cpus().values()), {"0-1"})
        self.stop(job, "by mpirun")

    def test_ranks_that_are_bound_otherwise_are_named(self):
        """By a srun that takes no notice of what it is told."""
        deaf = self.tool("deaf", "srun", f'exec {SRUN} "${{@/--cpu-bind=cores/--cpu-bind=map_cpu:1,1}}"\n')
        job = self.job("misbound", 2, "parallel={dp: 4, shard: 1}", ENDLESS, first=f"export PATH='{deaf['PATH']}'")
        self.trains("misbound")
        told = " ".join(event["message"] for event in self.events("misbound", "warning"))
        for node, ranks in (("node1", "0 and 1"), ("node2", "2 and 3")):
            self.assertIn(f"ranks {ranks} on {node} share CPU 1, and the plan gives each its own", told)
        self.stop(job, "misbound")

    def test_a_rank_whose_core_somebody_else_uses_is_named(self):
        """Ranks of one node are bound by nobody but this test."""
        job = self.started("shared core", 1, "run", "long.yaml", DP, "checkpoint.every_steps=1000000")
        cpus = sorted(os.sched_getaffinity(0))
        for (_, rank), process in self.processes().items():
            subprocess.run(("taskset", "--all-tasks", "--cpu-list", "--pid", str(cpus[rank]), str(process)), check=True,
                           capture_output=True)
        hog = subprocess.Popen(("taskset", "--cpu-list", str(cpus[1]), sys.executable, "-c", "while True: pass"))
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        named = re.compile(r"rank 1 on localhost holds the others up: it waits for others \d+ % of the time, they \d+ %; "
                           "computing is slow there: ")
        until(lambda: any(named.match(event["message"]) for event in self.events("shared core", "warning")), 90,
              "it is named")
        self.stop(job, "shared core")


class Nodes(Starts):
    state = "state-starts"

    def test_a_slurm_without_pmix(self):
        lacks = self.tool("no pmix", "srun", f"""\
if [ "$1" = --mpi=list ]; then printf 'MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n'; exit; fi
case " $* " in *" --mpi=pmix "*)
  echo "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files" >&2; exit 1;; esac
exec {SRUN} "$@"
""")
        begin = time.monotonic()
        verdict = self.fails(3, "no pmix run", "", environment=lacks)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertRegex(verdict["reason"], "Slurm has no plugin pmix, .* says: MPI plugin types are")
        self.assertIn("cluster.launcher=mpirun", verdict["next"])
        self.assertRegex(self.ptrain(2, "doctor", code=3, environment=lacks), "FAILED +pmix: Slurm has no plugin pmix")
        code, said = self.fake("pmix of mpirun", "", "cluster.launcher=mpirun", environment=lacks)
        self.assertEqual(code, 0, said)

    def test_tasks_of_an_array_are_runs_of_their_own(self):
        """One has the number of the array, by which Slurm's commands mean all tasks."""
        words = f"'{self.fake_bin}/ptrain' run recipe.yaml 'parallel={{dp: 2, shard: 1}}' {ENDLESS}"
        array = self.cluster.submit(f"exec {words} seed=$SLURM_ARRAY_TASK_ID --directory task-$SLURM_ARRAY_TASK_ID", "-N2",
                                    "--array=1-2", *self.batch_options, "--output=task-%a.out", cwd=self.work)
        hosts = {task: self.trains(f"task-{task}") for task in (1, 2)}
        for task in (1, 2):
            self.assertEqual(self.read(f"task-{task}", "plan.json")["recipe"]["seed"], task)
            until(lambda task=task: self.events(f"task-{task}", "shape_started"), 60, "it trains")
            self.cluster.run("pkill", "-9", "-f", "ptrain worker", on=max(hosts[task]))
            self.assertEqual(self.trains(f"task-{task}", 2), hosts[task])
        jobs = {event["job"] for task in (1, 2) for event in self.events(f"task-{task}", "attempt_started")}
        self.assertEqual(len(jobs), 2)
        self.assertTrue(jobs & {f"{array}_1", f"{array}_2"}, jobs)
        for task in (1, 2):
            self.assertEqual(self.events(f"task-{task}", "run_ended"), [])
            self.cluster.run(self.binary, "stop", self.work / f"task-{task}", on=min(hosts[task]))
            ended, = until(lambda task=task: self.events(f"task-{task}", "run_ended"), 60, "it ends")
            self.assertEqual(ended["code"], 20)

    def test_a_broken_nvidia_smi(self):
        environment = self.with_gpus()
        broken = self.tool("gpu tools", "nvidia-smi", "echo 'Unable to reach the driver'; exit 9\n")
        verdict = self.fails(3, "no driver", "", "cluster.file=gpus.yaml", environment=dict(environment, **broken))
        self.assertIn("node1: 0 GPUs can be used, the plan puts 1 ranks there; nvidia-smi fails with code 9: "
                      "Unable to reach the driver", verdict["reason"])

    def test_no_slurmd_when_a_job_begins_and_when_ranks_start_again(self):
        job = self.job("dead", 4, *ROWS, ENDLESS, first="while [ ! -e go ]; do sleep 0.05; done")
        self.cluster.wait(job, "RUNNING")
        self.cluster.kill_slurmd("node3")
        (self.work / "go").touch()
        self.assertEqual(self.trains("dead"), {"node1", "node2", "node4"})
        self.assertIn("warning: node3: does not answer, and is left out", (self.work / "dead.out").read_text())
        until(lambda: self.events("dead", "shape_started"), 60, "it trains")
        self.cluster.kill_slurmd("node4")
        self.cluster.run("pkill", "-9", "-f", "ptrain worker", on="node2")
        self.assertEqual(self.trains("dead", 3), {"node1", "node2"})
        ended = self.events("dead", "attempt_ended")
        self.assertEqual(ended[1]["code"], 14)
        # Slurm gives the node up at about the same time.
        self.assertRegex(ended[1]["reason"],
                         r"the node node4 is lost \(srun: error: (Task launch .* failed on node|Node failure on) node4")
        self.assertEqual([event["exclude"] for event in self.events("dead", "decision")], [["node3"], [], ["node4"]])
        self.stop(job, "dead")

    def test_a_node_that_slurm_has_taken_from_the_job(self):
        """Before ptrain begins, and between two looks of its own: by the first srun that is to start ranks."""
        down = "scontrol update nodename={} state=down reason=test"
        self.tool("taken", "srun", f"""\
case "$*" in *attempt-1/request.json) mkdir '{self.work}/taken/once' && {down.format("node4")};; esac
exec {SRUN} "$@"
""")
        job = self.job("taken away", 4, "shapes.0.global_batch_tokens=576", ROWS[1], ENDLESS,
                       first=f"{down.format('node3')}; export PATH='{self.work}/taken':$PATH")
        try:
            self.assertEqual(self.trains("taken away", 2), {"node1", "node2"})
            ended, = self.events("taken away", "attempt_ended")
            self.assertEqual((ended["code"], ended["reason"]), (14, "Slurm has taken node4 from the job"))
            self.stop(job, "taken away")
        finally:
            self.cluster.run("scontrol", "update", "nodename=node3,node4", "state=resume", check=False)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
