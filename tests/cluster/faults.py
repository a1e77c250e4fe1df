"""Faults of a campaign: what is done to a run on the test cluster. Each does its harm and ends once no more
is to come; `scene` is the run that it befalls (campaign.py)."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from cluster import until
from machine import ClusterError

WORKER = "ptrain worker"


def kill(scene, node):
    scene.signal_ranks("KILL", node)


def segv(scene, node):
    scene.signal_ranks("SEGV", node)


def stop(scene, node):
    scene.signal_ranks("STOP", node)


def oom(scene, node):
    """The kernel kills a rank for want of memory: of a group that it shares with a glutton."""
    groups = [line.rpartition(":")[2] for line in pathlib.Path("/proc/self/cgroup").read_text().split()
              if ":memory:" in line]
    if not groups:  # version 2 has no room for a group beside processes: the same signal, by hand
        return kill(scene, node)
    own = groups[0]
    group = pathlib.Path(f"/sys/fs/cgroup/memory{own}/ptrain-campaign-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(24 << 20))
        rank = scene.process_of_rank(node)
        (group / "cgroup.procs").write_text(str(rank))
        pathlib.Path(f"/proc/{rank}/oom_score_adj").write_text("1000")  # or the glutton may be the one
        glutton = "import sys; open(sys.argv[1], 'w').write('0'); x = bytearray(64 << 20)"
        subprocess.run([sys.executable, "-c", glutton, group / "cgroup.procs"], check=False)
    finally:
        until(lambda: remove_group(group), 20, f"{group} is empty")


def remove_group(group):
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def power(scene, node):
    scene.cluster.kill_node(node)


def home(scene, _):
    """The node where the supervisor is; Slurm starts the job again."""
    node = scene.home()
    scene.cluster.kill_node(node)
    try:
        until(lambda: not scene.is_running(), 90, "Slurm misses the node")
    finally:
        scene.cluster.restore(node)


def cable(scene, node):
    scene.cluster.cut(node)


def blink(scene, node):
    scene.cluster.cut(node)
    time.sleep(1.5)
    scene.cluster.restore(node)


def slow(scene, node):
    scene.cluster.slow(node, 20)


def slurmd(scene, node):
    scene.cluster.kill_slurmd(node)


def supervisor(scene, _):
    scene.cluster.run("pkill", "-KILL", "-f", "ptrain (run|resume)", on=scene.home())


def shell(scene, _):
    scene.cluster.run("scancel", "--signal=KILL", "--batch", scene.job())


def cancel(scene, _):
    scene.cluster.run("scancel", scene.job())


def requeue(scene, _):
    scene.cluster.run("scontrol", "requeue", scene.job())


def limit(scene, _):
    """The time limit of the job, which another then follows: it was given one when it began."""


def disk(scene, _):
    """Full until a checkpoint has failed."""
    filler = scene.folder / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(65536)):
            pass
    try:
        until(lambda: "the checkpoint could not be written" in scene.output(), 60, "a checkpoint fails")
        time.sleep(2)  # and metrics and events have no room either
    finally:
        filler.unlink()


# By what has to come of them. After HARMLESS ones the run goes on; after FATAL ones it has to be resumed by
# hand, for they end its job or its supervisor; after the others it starts again by itself.
HARMLESS = (blink, slow, slurmd, disk)
FATAL = (supervisor, shell, cancel)
# What these aim at may have ended by itself before.
AIMED = (kill, segv, stop, oom, supervisor, shell, cancel, requeue)
ANYWHERE = (kill, segv, stop, oom, power, cable, blink, slow, slurmd, cancel)
# Where the run is started by hand in a job, and where ptrain has submitted the job.
DECKS = {"inside": (disk, supervisor, shell, *ANYWHERE), "submitted": (requeue, limit, home, *ANYWHERE)}


def harm(fault, scene, node):
    try:
        fault(scene, node)
    except ClusterError:
        if fault not in AIMED:
            raise
