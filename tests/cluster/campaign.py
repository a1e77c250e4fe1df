"""Faults at random moments in runs on the test cluster, and what became of the runs.

    campaign.py FOLDER PTRAIN N SEED     FOLDER: where states and results go
    campaign.py --table FILE ...         the table of such results

N faults are drawn with their moments from SEED, one after the other, five to a run. After each the run must
go on, by itself or, where the fault ends its job or its supervisor, after `ptrain resume` in a new
job. In the end each step must be there once, with the loss and the tokens of a run that nothing
disturbed; every checkpoint must be whole; and no rank may be left.
"""

import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import faults  # noqa: E402
from cluster import until, why_not  # noqa: E402
from runs import Runs, seconds, whole_lines  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "kill"))
from small_run import incomplete  # noqa: E402

FAULTS_OF_A_RUN = 5
SHORT = 100  # steps of the first shape; the second has no end
# fp64 and small steps: what rounding makes of other numbers of ranks stays far below what is looked for.
RECIPE = ("recipe.yaml", f"shapes.0.steps={SHORT}", "shapes.0.global_batch_tokens=2880",
          "shapes.1.global_batch_tokens=2880", "learning_rate={peak: 3e-4, warmup_steps: 5, decay: constant}", "precision=fp64",
          "cluster.ranks_per_node=2")
ENDLESS = "shapes.1.steps=1000000"
FAILURES = ("failure.hang_timeout=3", "failure.time_limit=chain")
# A job that is to run into its time limit finds a file beside its run directory.
SETUP = "cluster.setup=['rm ../limit && scontrol update job=$SLURM_JOB_ID EndTime=now+25 || true']"


class Scene:
    """One run, and what faults ask about it."""

    def __init__(self, campaign, name, way):
        self.campaign, self.name, self.way = campaign, name, way
        self.cluster = campaign.cluster
        small = campaign.work / "small" / name  # on the disk that can be filled
        self.folder = small if way == "inside" else campaign.work / name
        self.said = campaign.work / f"{name}.out"
        self.began = time.time()

    def start(self):
        arguments = ("run", *RECIPE, ENDLESS, *FAILURES)
        if self.way == "inside":
            return self.submit(*arguments, "--directory", self.folder)
        return self.login(*arguments, SETUP, "--nodes=4", "--time=60", "--detach", "--directory", self.folder)

    def resume(self):
        if self.way == "inside":
            return self.submit("resume", self.folder)
        return self.login("resume", self.folder, "--detach")

    def submit(self, *arguments):
        command = " ".join(f"'{word}'" for word in (self.campaign.binary, *arguments))
        # Without these Slurm itself ends a job whose node is lost, and starts it again.
        self.cluster.submit(command, "-N4", "--exclusive", "--no-kill", "--no-requeue", "--open-mode=append",
                            f"--output={self.said}", cwd=self.campaign.work)

    def login(self, *arguments):
        self.cluster.run(self.campaign.binary, *arguments, cwd=self.campaign.work,
                         environment=self.campaign.environment)

    def stop(self):
        self.cluster.run(self.campaign.binary, "stop", self.folder, on=self.home())

    # Slurm's view. There is one run at a time; a chain has two jobs for a moment.

    def jobs(self):
        lines = self.cluster.run("squeue", "-h", "-o", "%A %T %B", timeout=30).stdout.splitlines()
        return [line.split() for line in lines]

    def is_running(self):
        return any(state == "RUNNING" for _, state, _ in self.jobs())

    def job(self):
        return until(lambda: [job for job, state, _ in self.jobs() if state == "RUNNING"], 60, "a job runs")[0]

    def home(self):
        """The node of its supervisor."""
        return until(lambda: [node for _, state, node in self.jobs() if state == "RUNNING"], 60, "a job")[0]

    def nodes(self):
        """Those that have ranks, but for the supervisor's."""
        places = json.loads((self.folder / "plan.json").read_text())["ranks"]
        return sorted({place["node"] for place in places} - {self.home()})

    def signal_ranks(self, name, node):
        self.cluster.run("pkill", f"-{name}", "-f", faults.WORKER, on=node)

    def process_of_rank(self, node):
        """A rank of the node, as the host numbers processes."""
        for number in self.cluster.host_processes(node, b"worker"):
            return number
        raise faults.ClusterError(f"no rank on {node}")

    # What the run has written.

    def steps(self):
        return whole_lines(self.folder / "metrics.jsonl")

    def events(self, kind, since=0.0):
        return [event for event in whole_lines(self.folder / "events.jsonl")
                if event["kind"] == kind and seconds(event) >= since]

    def restarts(self, since):
        """Events of training that began again, not with the next shape."""
        good = {event["attempt"] for event in self.events("attempt_ended") if event["code"] == 0}
        good.add(0)  # before the first
        return [event for event in self.events("shape_started", since) if event["attempt"] - 1 not in good]

    def output(self):
        return self.said.read_text() if self.said.exists() else ""

    def wait_for_steps(self, count):
        def made():
            if not self.jobs():
                raise faults.ClusterError(f"{self.folder} has ended: {self.output()[-2000:]}")
            return len(self.steps()) >= count
        until(made, 120, f"{self.name} makes {count} steps")


class Campaign(Runs):
    state = "state-campaign"

    @classmethod
    def prepare(cls):
        """A small disk; in a mount namespace of ours (main), so that it goes away with us."""
        (cls.work / "small").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", cls.work / "small"], check=True)

    def one_run(self, scene, hand, dice):
        """Deals the faults of `hand` to a new run; their rows."""
        if faults.limit in hand:
            hand.sort(key=lambda fault: fault is not faults.limit)  # it is so from the first
            (self.work / "limit").touch()
        scene.start()
        scene.wait_for_steps(dice.randrange(2, 2 * SHORT))
        rows = []
        while hand:
            nodes = scene.nodes()
            if not nodes:  # only the supervisor's is left
                break
            rows.append(self.one_fault(scene, hand.pop(0), dice.choice(nodes)))
            print(scene.name, json.dumps(rows[-1]), flush=True)
            self.mend_nodes()
            scene.wait_for_steps(len(scene.steps()) + dice.randrange(12, 40))
        scene.stop()
        until(lambda: not scene.jobs(), 60, "the job has ended")
        until(self.no_rank_is_left, 30, "no rank is left")
        for checkpoint in (scene.folder / "checkpoints").glob("step-*"):
            self.assertIsNone(incomplete(checkpoint))
        return rows

    def one_fault(self, scene, fault, node):
        before = len(scene.steps())
        begin = scene.began if fault is faults.limit else time.time()
        faults.harm(fault, scene, node)

        def past():
            if not scene.jobs():
                return "over"
            if fault in faults.HARMLESS:
                return len(scene.steps()) >= before + 12
            return fault not in faults.FATAL and scene.restarts(begin)
        over = until(past, 180, f"{scene.name}: {fault.__name__} is past") == "over"
        if over:
            self.mend_nodes()
            until(self.no_rank_is_left, 30, "no rank is left")
            scene.resume()
            until(lambda: scene.restarts(begin), 120, f"{scene.name} is resumed")
        return self.row(scene, fault, before, begin, over)

    def row(self, scene, fault, before, begin, over):
        ended = [event for event in scene.events("attempt_ended", begin) if event["code"] != 0]
        started = scene.restarts(begin)
        trains = seconds(started[0]) - begin if started and not over else None
        return {"fault": fault.__name__, "way": scene.way, "step": before, "resumed": over,
                "known_s": seconds(ended[0]) - begin if ended else None, "trains_s": trains,
                "redone": max(0, (ended[0]["step"] if ended else before) - started[0]["step"]) if started else 0,
                "codes": [event["code"] for event in ended]}

    def mend_nodes(self):
        for name in self.cluster.nodes:
            self.cluster.restore(name)

    def no_rank_is_left(self):
        return all(self.cluster.run("pgrep", "-f", faults.WORKER, on=name, check=False).returncode != 0
                   for name in self.cluster.nodes)

    def compare(self, scenes):
        """With one run that nothing disturbed, as long as the longest."""
        longest = max(len(scene.steps()) for scene in scenes)
        self.ptrain(1, "run", *RECIPE, f"shapes.1.steps={max(1, longest - SHORT)}", "--directory", "alone",
                    timeout=600)
        alone = [json.loads(line) for line in (self.work / "alone/metrics.jsonl").read_text().splitlines()]
        for scene in scenes:
            steps = scene.steps()
            self.assertEqual([step["step"] for step in steps], list(range(1, len(steps) + 1)), scene.name)
            for step, other in zip(steps, alone):
                self.assertEqual(step["tokens_total"], other["tokens_total"], scene.name)
                # On other numbers of ranks fp32 rounds otherwise; a batch trained twice or not is far beyond this.
                self.assertLess(abs(step["loss"] / other["loss"] - 1), 1e-5, f"{scene.name}: {step}")

    def run_all(self, count, seed):
        dice = random.Random(seed)
        hands = deal(count, dice)
        scenes, rows = [], []
        while hands:
            way, hand = hands.pop(0)
            scenes.append(Scene(self, f"run-{len(scenes)}-{way}", way))
            rows += self.one_run(scenes[-1], hand, dice)
            if hand:  # what had no node to befall
                hands.append((way, hand))
            self.tearDown()
        self.compare(scenes)
        return rows


def deal(count, dice):
    """[(way, faults of a run)]: within a way each fault as often as the others."""
    hands, decks = [], {way: [] for way in faults.DECKS}
    while count > 0:
        way = list(decks)[len(hands) % len(decks)]
        hands.append((way, []))
        for _ in range(min(FAULTS_OF_A_RUN, count)):
            if not decks[way]:
                decks[way] = dice.sample(faults.DECKS[way], len(faults.DECKS[way]))
            hands[-1][1].append(decks[way].pop())
            count -= 1
    return hands


def text(rows):
    """A line a kind of fault: how many, how soon known and past in the middle and at worst, steps redone."""
    def cell(values):
        values = [value for value in values if value is not None]
        return f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "-"
    lines = [f"{'fault':<12}{'faults':>7}{'by hand':>9}  {'known s':<12}{'training s':<12}steps redone",
             f"{'':<30}" + "(median, worst)"]
    for fault in [*sorted({row["fault"] for row in rows}), "all"]:
        mine = [row for row in rows if fault in (row["fault"], "all")]
        lines.append(f"{fault:<12}{len(mine):>7}{sum(row['resumed'] for row in mine):>9}  "
                     f"{cell([row['known_s'] for row in mine]):<12}{cell([row['trains_s'] for row in mine]):<12}"
                     f"{cell([row['redone'] for row in mine])}")
    return "\n".join(lines)


def table(paths):
    lines = "".join(pathlib.Path(path).read_text() for path in paths).splitlines()
    print(text([json.loads(line) for line in lines]))


def keep_traces(name):
    """Logs of the machines, and runs without checkpoints, beside the results."""
    kept = Campaign.folder / name
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(Campaign.work, kept, symlinks=True, ignore=shutil.ignore_patterns("checkpoints", "cache", "filler"))
    for log in Campaign.cluster.folder.glob("*/*.log"):
        shutil.copy(log, kept / f"{log.parent.name}-{log.name}")
    return kept


def campaign(folder, binary, count, seed):
    Campaign.folder, Campaign.binary = pathlib.Path(folder).resolve(), pathlib.Path(binary).resolve()
    Campaign.setUpClass()
    try:
        rows = Campaign().run_all(count, seed)
    except BaseException:
        print("what Slurm and the runs left:", keep_traces(f"failed-{seed}"), flush=True)
        raise
    finally:
        Campaign.doClassCleanups()
    (Campaign.folder / f"seed-{seed}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(text(rows))


def main():
    if sys.argv[1] == "--table":
        return table(sys.argv[2:])
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    if os.environ.get("PTRAIN_CAMPAIGN") != "own mounts":
        os.environ["PTRAIN_CAMPAIGN"] = "own mounts"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    return campaign(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))


if __name__ == "__main__":
    main()
