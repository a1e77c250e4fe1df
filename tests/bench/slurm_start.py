"""Seconds to the first step on four nodes of a test cluster: `ptrain run` in a job, and bare srun of the
same worker.

    slurm_start.py PTRAIN ROUNDS FOLDER     FOLDER: where the cluster and the runs go (root only)
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

from runs import DP, Runs  # noqa: E402

LAYOUT = DP.replace("dp: 2", "dp: 4")


class Listener:
    """Stands in for the supervisor, which the worker needs to start: takes what ranks say and forgets it."""

    def __init__(self, host):
        self.server = socket.create_server((host, 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.server.accept()
            threading.Thread(target=self.drain, args=(connection,), daemon=True).start()

    @staticmethod
    def drain(connection):
        while connection.recv(65536):
            pass


def first_step(folder, process):
    while process.poll() is None:
        path = folder / "metrics.jsonl"
        if path.exists() and "\n" in path.read_text():
            return time.monotonic()
        time.sleep(0.005)
    raise SystemExit(f"no step was made in {folder}")


def end(process):
    for name in (signal.SIGINT, signal.SIGINT):
        if process.poll() is None:
            process.send_signal(name)
            time.sleep(0.3)
    process.wait()


def by_ptrain(ptrain, folder):
    """Seconds in all, and of them in the preflight."""
    begin = time.monotonic()
    with open(f"{folder}.out", "wb") as out:
        process = subprocess.Popen([ptrain, "run", "long.yaml", LAYOUT, "--directory", folder], stderr=out)
    seconds = first_step(folder, process) - begin
    end(process)
    events = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return seconds, next(e["preflight_s"] for e in events if e["kind"] == "attempt_started")


def by_srun(ptrain, model, folder):
    """The first attempt of the run `model` once more, in another folder."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("metrics.jsonl", "step-*"))
    path = next(folder.glob("logs/attempt-1/request.json"))
    request = json.loads(path.read_text())
    listener = Listener(request["control_host"])
    request.update(run_directory=str(folder), control_port=listener.server.getsockname()[1])
    path.write_text(json.dumps(request))
    command = ["srun", "--mpi=pmix", "--nodes=4", "--ntasks=4", "--ntasks-per-node=1", "--cpus-per-task=4",
               "--kill-on-bad-exit=1", "--input=none", ptrain, "worker", "--request", path]
    environment = dict(os.environ, SLURM_PMIX_FENCE="ring", OMP_NUM_THREADS="4", OMP_WAIT_POLICY="passive",
                       PTRAIN_CONTROL_TOKEN="0")
    begin = time.monotonic()
    with open(f"{folder}.out", "wb") as out:
        process = subprocess.Popen(command, env=environment, stderr=out)
    seconds = first_step(folder, process) - begin
    end(process)
    return seconds


def inside(ptrain, rounds):
    """In a job: a line of numbers a round."""
    here = pathlib.Path.cwd()
    by_ptrain(ptrain, here / "warm-up")  # makes the token index
    for i in range(rounds):
        ours, preflight = by_ptrain(ptrain, here / f"ptrain-{i}")
        bare = by_srun(ptrain, here / f"ptrain-{i}", here / f"srun-{i}")
        print(json.dumps([ours, preflight, bare]), flush=True)


def main():
    ptrain, rounds, folder = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3]
    if folder == "--inside":
        return inside(ptrain, rounds)
    Runs.folder, Runs.binary = pathlib.Path(folder).resolve(), ptrain
    Runs.setUpClass()
    try:
        done = Runs.cluster.run("salloc", "-Q", "-N4", "--exclusive", sys.executable, __file__, ptrain, rounds, "--inside",
                                cwd=Runs.work, timeout=600, environment=Runs.environment)
    finally:
        Runs.doClassCleanups()
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    ours, preflight, bare = (statistics.median(column) for column in zip(*lines))
    print(f"slurm-start     first step on 4 nodes: ptrain run {ours:.2f} s, of them {preflight:.2f} s preflight; "
          f"bare srun {bare:.2f} s\nslurm-start     without preflight {ours - preflight:.2f} s; 1.3 x bare + 0.5 s "
          f"is {1.3 * bare + 0.5:.2f} s")


if __name__ == "__main__":
    main()
