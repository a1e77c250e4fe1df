"""Runs on the test cluster whose ranks do what a script says."""

import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True

from cluster import until  # noqa: E402
from runs import Runs  # noqa: E402

TOPOLOGY = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/cluster/four_nics.xml"


class FakeRuns(Runs):
    """With runs of the engine without tensors (tests/launch/fake_engine.cc) beside the real ones. Set `fake_ptrain`
    too, a ptrain beside that engine."""

    fake_ptrain = pathlib.Path()

    @classmethod
    def prepare(cls):
        cls.fake_bin = cls.work / "fake"
        shutil.copytree(cls.fake_ptrain.parent, cls.fake_bin)

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
        fit = {"idle", "planned", "allocated", "mixed", "completing"}
        self.assertEqual(set(self.cluster.states().values()) - fit, set())
