"""Faults at random moments in runs on the test cluster, and what became of the runs.

    campaign.py FOLDER PTRAIN N SEED     FOLDER: where states and results go

Each of N runs gets one fault, drawn with its moment from SEED. A run must end with all of its steps, each of
them once and with the losses of a run that nothing disturbed, whether by itself or, where the fault
ends its job or its supervisor, after `ptrain resume` in a new job; and no rank may be left.
"""

import contextlib
import json
import pathlib
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True

from cluster import until  # noqa: E402
from machine import ClusterError  # noqa: E402
from runs import Runs, seconds  # noqa: E402

STEPS = 300
ARGUMENTS = ("run", "recipe.yaml", f"shapes.0.steps={STEPS}", "shapes.1.global_batch_tokens=576",
             "learning_rate.decay=constant", "failure.hang_timeout=3")


class Campaign(Runs):
    state = "state-campaign"

    # Faults. Each does its harm to a run on nodes 1 to 4, and ends once no more is to come.

    def kill(self, job, node):
        self.cluster.run("pkill", "-KILL", "-f", "ptrain worker", on=node)

    def segv(self, job, node):
        self.cluster.run("pkill", "-SEGV", "-f", "ptrain worker", on=node)

    def stop(self, job, node):
        self.cluster.run("pkill", "-STOP", "-f", "ptrain worker", on=node)

    def power(self, job, node):
        self.cluster.kill_node(node)

    def cable(self, job, node):
        self.cluster.cut(node)

    def blink(self, job, node):
        self.cluster.cut(node)
        time.sleep(1.5)
        self.cluster.restore(node)

    def slow(self, job, node):
        self.cluster.slow(node, 20)

    def slurmd(self, job, node):
        self.cluster.kill_slurmd(node)

    def supervisor(self, job, node):
        self.cluster.run("pkill", "-KILL", "-f", "ptrain run", on="node1")

    def cancel(self, job, node):
        self.cluster.run("scancel", job)

    def shell(self, job, node):
        self.cluster.run("scancel", "--signal=KILL", "--batch", job)

    FAULTS = ("kill", "segv", "stop", "power", "cable", "blink", "slow", "slurmd", "supervisor", "cancel",
              "shell")

    def one(self, number, dice):
        fault = dice.choice(self.FAULTS)
        # The supervisor is on node1; what befalls it is the part of others.
        node = dice.choice(("node2", "node3", "node4"))
        step = dice.randrange(5, STEPS - 50)
        name = f"{number:03}-{fault}"
        job = self.submit_run(name)
        self.wait_for_step(job, name, step)
        begin = time.time()
        with contextlib.suppress(ClusterError):  # it may have been quicker
            getattr(self, fault)(job, node)
        self.cluster.wait(job, seconds=120)
        until(self.no_rank_left_where_power_is, 20, "no rank is left")
        resumed = not self.is_finished(name)
        if resumed:
            self.heal()
            self.ptrain(4, "resume", name)
        self.check(name)
        return self.row(name, fault, node, step, begin, resumed)

    def submit_run(self, name):
        command = " ".join(f"'{word}'" for word in (self.binary, *ARGUMENTS, "--directory", name))
        return self.cluster.submit(command, "-N4", *self.batch_options,
                                   f"--output={self.work}/{name}.out", cwd=self.work)

    def is_finished(self, name):
        path = self.work / name / "verdict.json"
        return path.exists() and json.loads(path.read_text())["code"] == 0

    def heal(self):
        for name in self.cluster.nodes:
            self.cluster.restore(name)
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_for_nodes()

    def no_rank_left_where_power_is(self):
        return all(self.cluster.run("pgrep", "-f", "ptrain worker", on=name, check=False).returncode != 0
                   for name in self.cluster.nodes if self.cluster.is_on(name))

    def check(self, name):
        lines = [json.loads(line)
                 for line in (self.work / name / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], list(range(1, STEPS + 6)), name)
        worst = max(abs(line["loss"] / loss - 1)
                    for line, loss in zip(lines, self.losses("undisturbed"), strict=True))
        self.assertLess(worst, 1e-5, name)

    def row(self, name, fault, node, step, begin, resumed):
        ended = [e for e in self.events(name, "attempt_ended") if e["code"] != 0]
        started = [e for e in self.events(name, "shape_started") if e["attempt"] == 2]
        redone = max((e["step"] - s["step"] for e, s in zip(ended, started)), default=0)
        known = seconds(ended[0]) - begin if ended else None
        trains = seconds(started[0]) - begin if ended and started and not resumed else None
        return {"fault": fault, "node": node, "step": step, "resumed": resumed, "known_s": known,
                "trains_s": trains, "redone": max(0, redone),
                "codes": [e["code"] for e in ended]}

    def run_all(self, count, seed):
        self.ptrain(1, *ARGUMENTS, "--directory", "undisturbed")
        dice = random.Random(seed)
        rows = []
        for number in range(count):
            try:
                rows.append(self.one(number, dice))
                print(number, json.dumps(rows[-1]), flush=True)
            finally:
                self.heal()
        return rows


def text(rows):
    """A line a kind of fault: how many, how soon known and past in the middle and at worst, steps redone."""
    lines = ["fault       runs  known s (median, worst)  training again s  steps redone (worst)"]
    for fault in sorted({row["fault"] for row in rows}):
        mine = [row for row in rows if row["fault"] == fault]
        cells = []
        for key in ("known_s", "trains_s"):
            values = [row[key] for row in mine if row[key] is not None]
            cells.append(f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "-")
        lines.append(f"{fault:<12}{len(mine):>4}  {cells[0]:<24} {cells[1]:<17} "
                     f"{max(row['redone'] for row in mine)}")
    return "\n".join(lines)


def main():
    Campaign.folder, Campaign.binary = (pathlib.Path(sys.argv[i]).resolve() for i in (1, 2))
    Campaign.setUpClass()
    try:
        print(text(Campaign().run_all(int(sys.argv[3]), int(sys.argv[4]))))
    finally:
        Campaign.doClassCleanups()


if __name__ == "__main__":
    main()
