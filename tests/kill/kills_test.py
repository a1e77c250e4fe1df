#!/usr/bin/env python3
"""Kills whole runs and resumes them. kills_test.py PLANTED_BINARY LIST_FAULTS CLUSTER ...

Each run is killed three times (SIGKILL to supervisor, mpirun and ranks at once), most of them at a
fault point on a rank, some at any time, and then resumed to its end. Then every step must have been
done once, with the losses of the run that nobody killed, and its last checkpoint must hold the same
bytes: parameters, moments, and the place in the data.
"""

import random
import shutil
import sys
import time

from small_run import (NUM_STEPS, Place, incomplete, kill_session, read_passes, wait_until_gone)

PHASES = {"start": "starting", "train": "training", "save": "saving", "publish": "publishing",
          "next": "between shapes"}
LEAST_EACH = {"start": 8, "train": 8, "save": 8, "publish": 8}
LEAST = 40
NUM_RUNS = 19
KILLS_A_RUN = 3
RANDOM_RUNS = 3   # of them, killed at any time


class Failed(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failed(what)


class KillTest:
    def __init__(self, place, seed):
        self.place = place
        self.draw = random.Random(seed)
        self.kills = {phase: 0 for phase in PHASES}
        self.passes = []

    def undisturbed(self):
        record = self.place.root / "passes"
        begin = time.monotonic()
        require(self.place.start("truth", f"record {record}").wait() == 0,
                self.place.output("truth"))
        self.seconds = time.monotonic() - begin
        self.passes = list(read_passes(record).values())
        self.truth = self.what_was_trained("truth")
        require([step["step"] for step in self.truth[0]] == list(range(1, NUM_STEPS + 1)), "steps")

    def what_was_trained(self, name):
        """Metrics without the times, and the bytes of the last checkpoint."""
        kept = ("step", "shape", "loss", "grad_norm", "learning_rate", "tokens", "tokens_total")
        metrics = [{key: line[key] for key in kept} for line in self.place.metrics(name)]
        last = self.place.checkpoints(name)[-1]
        files = {path.name: path.read_bytes() for path in last.iterdir()}
        return metrics, files

    def fault(self, phase, fresh):
        """An order that a process of the run is known to obey."""
        process = self.draw.choice(self.passes)
        points = [key for key in process if key[1].split(".")[0] == phase]
        if not fresh:   # only what every attempt passes
            points = [key for key in points if self.in_all_attempts(key)]
        rank, name = self.draw.choice(sorted(points))
        return f"kill {name} {rank} {self.draw.randint(1, process[rank, name]) if fresh else 1}"

    def in_all_attempts(self, key):
        of_rank = [process for process in self.passes if any(rank == key[0] for rank, _ in process)]
        return all(key in process for process in of_rank)

    def kill_once(self, name, phase, at_random):
        fresh = not (self.place.run_of(name) / "plan.json").exists()
        if fresh:
            shutil.rmtree(self.place.folder_of(name), ignore_errors=True)
        start = self.place.start if fresh else self.place.resume
        if at_random:
            record = self.place.root / f"{name}-{time.monotonic_ns()}"
            record.touch()
            process = start(name, f"record {record}")
            time.sleep(self.draw.uniform(0.15, 0.9 * self.seconds))
            killed = process.poll() is None
            kill_session(process.pid)
            lines = record.read_text().splitlines()
            point = lines[-1].split()[2] if lines else "start"
        else:
            order = self.fault(phase, fresh)
            process = start(name, order)
            point = order.split()[1]
        code = process.wait()
        left = wait_until_gone(process.pid)
        kill_session(process.pid)
        require(not left, f"{name}: {len(left)} processes outlived {point}")
        if at_random and not killed or code == 0:
            return   # it was at its end before
        require(code == -9, f"{name}: exit code {code} at {point}\n{self.place.output(name)}")
        self.kills[point.split(".")[0]] += 1
        for checkpoint in self.place.checkpoints(name):
            problem = incomplete(checkpoint)
            require(problem is None, f"{name} after {point}: {problem}")

    def finish(self, name):
        start = self.place.resume
        if not (self.place.run_of(name) / "plan.json").exists():
            shutil.rmtree(self.place.folder_of(name), ignore_errors=True)
            start = self.place.start
        process = start(name)
        require(process.wait() == 0, f"{name} does not finish:\n{self.place.output(name)}")
        require(not wait_until_gone(process.pid), f"{name}: processes are left at the end")
        require(self.place.lock_is_free(name), f"{name}: the run is still locked")
        metrics, files = self.what_was_trained(name)
        for step, wanted in zip(metrics, self.truth[0]):
            require(step == wanted, f"{name}: {step} instead of {wanted}")
        require(len(metrics) == NUM_STEPS, f"{name}: {len(metrics)} steps")
        differing = [file for file, content in self.truth[1].items() if files.get(file) != content]
        require(not differing, f"{name}: the last checkpoint differs in {differing}")

    def run(self):
        self.undisturbed()
        phases = ["start", "train", "save", "publish"]
        for i in range(NUM_RUNS):
            name = f"run-{i}"
            for k in range(KILLS_A_RUN):
                phase = "next" if i % 8 == 7 and k == 0 else phases[(i + k) % len(phases)]
                self.kill_once(name, phase, i < RANDOM_RUNS)
            self.finish(name)
            shutil.rmtree(self.place.folder_of(name))


def main():
    test = KillTest(Place(sys.argv[1], sys.argv[3]), seed=1)
    begin = time.monotonic()
    try:
        test.run()
    except Failed as failure:
        print(failure)
        return 1
    total = sum(test.kills.values())
    print(f"{total} kills in {NUM_RUNS} runs, {time.monotonic() - begin:.0f} s:",
          ", ".join(f"{count} {PHASES[phase]}" for phase, count in test.kills.items()))
    enough = total >= LEAST and all(test.kills[phase] >= n for phase, n in LEAST_EACH.items())
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
