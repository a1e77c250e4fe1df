"""`ptrain resume RUN` after kills, changes of the layout, damage and a full disk.

    runs_test.py BINARY
"""

import json
import os
import signal
import subprocess
import sys
import unittest

from place import ENDLESS, Place, damage

BINARY = sys.argv.pop(1)


class Runs(unittest.TestCase):
    def setUp(self):
        self.place = Place(BINARY)
        self.addCleanup(self.place.close)

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 20, self.place.output.read_text())

    def same_steps(self, found, expected, names=("loss", "grad_norm", "tokens_total")):
        self.assertEqual(sorted(found), sorted(expected))
        for step, line in expected.items():
            for name in names:
                self.assertEqual(found[step][name], line[name], f"{name} of step {step}")

    def killed_and_resumed_is_exact(self, *layout):
        self.place.run("whole", *layout)
        process = self.place.spawn("run", "recipe.yaml", "--directory", "killed", *layout)
        self.place.wait_for_step(process, "killed", 24)
        self.place.kill_all(process)
        self.place.ptrain("resume", "killed")
        self.same_steps(self.place.metrics("killed"), self.place.metrics("whole"))
        whole, killed = (self.place.checkpoint(name, 60) for name in ("whole", "killed"))
        files = sorted(path.name for path in whole.glob("*.distcp"))
        self.assertTrue(files)
        for name in files:
            self.assertEqual((whole / name).read_bytes(), (killed / name).read_bytes(), name)

    def test_exact_dp(self):
        self.killed_and_resumed_is_exact("parallel={dp: 2, shard: 1}")

    def test_exact_zero_1(self):
        self.killed_and_resumed_is_exact("parallel={dp: 1, shard: 2, zero: 1}")

    def test_exact_zero_2(self):
        self.killed_and_resumed_is_exact("parallel={dp: 1, shard: 2, zero: 2, micro_batch: 1}")

    def test_exact_zero_3(self):
        self.killed_and_resumed_is_exact("parallel={dp: 1, shard: 2, zero: 3}")

    def test_one_two_three_ranks(self):
        place = self.place
        place.recipe(short=ENDLESS, long=20, ranks=1)
        constant = "learning_rate.decay=constant"  # whatever the last step is
        process = place.spawn("run", "recipe.yaml", constant, "--directory", "moved")
        for ranks, step in ((2, 60), (3, 140)):
            place.wait_for_step(process, "moved", step)
            self.stop(process)
            process = place.spawn("resume", "moved", f"cluster.ranks_per_node={ranks}")
        place.wait_for_step(process, "moved", max(place.metrics("moved")) + 80)
        self.stop(process)
        moved = place.metrics("moved")
        place.recipe(short=len(moved), long=1, ranks=1)
        place.run("whole", constant)
        whole = place.metrics("whole")
        whole.popitem()
        self.assertEqual(sorted(whole), sorted(moved))
        worst = max(abs(moved[s]["loss"] / whole[s]["loss"] - 1) for s in whole)
        self.assertLess(worst, 1e-5)
        ranks_of = lambda path: len(json.loads(path.read_text())["ranks"])
        run = place.root / "moved"
        self.assertEqual([ranks_of(run / f"logs/attempt-{n}/plan.json") for n in (1, 2, 3)],
                         [1, 2, 3])
        self.assertEqual(ranks_of(run / "plan.json"), 3)

    def test_as_fast_after_as_before(self):
        place = self.place
        place.recipe(short=ENDLESS, long=5)
        process = place.spawn("run", "recipe.yaml", "--directory", "run")
        place.wait_for_step(process, "run", 300)
        self.stop(process)
        process = place.spawn("resume", "run")
        place.wait_for_step(process, "run", max(place.metrics("run")) + 300)
        self.stop(process)
        times = {1: [], 2: []}
        for line in place.metrics("run").values():
            times[line["attempt"]].append(line["step_s"])
        # What else the machine does makes steps slower, not faster; ten times as slow is the run's doing.
        quick = {attempt: sorted(found)[len(found) // 4] for attempt, found in times.items()}
        self.assertLess(quick[2], 10 * quick[1])

    def test_saves_that_come_fast_wait_for_each_other(self):
        self.place.run("run", "checkpoint.every_steps=1")
        published = [event["step"] for event in self.place.events("run", "checkpoint_published")]
        self.assertEqual(published, list(range(1, 61)))
        said = [event["message"] for event in self.place.events("run", "warning")
                if "is still being written" in event["message"]]
        self.assertLessEqual(len(said), 2, said)  # at most once in each shape

    def test_a_stop_does_not_wait_for_a_validation(self):
        place = self.place
        place.recipe(short=ENDLESS)
        process = place.spawn("run", "recipe.yaml", "--directory", "run", "data.validation_fraction=0.2",
                              "validation={every_steps: 1, tokens: 24, sample_tokens: 0}")
        place.wait_for_step(process, "run", 3)
        self.stop(process)
        last = max(place.metrics("run"))
        validated = [event["step"] for event in place.events("run", "validation")]
        self.assertEqual(validated, list(range(1, last)))
        self.assertEqual(place.events("run", "checkpoint_published")[-1]["step"], last)

    def test_what_may_change(self):
        place = self.place
        place.recipe(short=ENDLESS, long=400)
        process = place.spawn("run", "recipe.yaml", "--directory", "run", "checkpoint.async=false")
        place.wait_for_step(process, "run", 12)
        place.kill_all(process)
        plan = (place.root / "run/plan.json").read_bytes()
        said = place.ptrain("resume", "run", "model.hidden_size=32", "optimizer.eps=1e-6", code=2)
        self.assertIn("model.hidden_size: 24 -> 32", said)
        said = place.ptrain("resume", "run", "optimizer.eps=1e-6", "shapes.1.steps=5", code=2)
        self.assertIn("optimizer.eps: 1e-08 -> 1e-06", said)
        self.assertIn("shapes.1.steps: 400 -> 5", said)
        steps = max(int(path.name[len("step-"):]) for path in place.checkpoints("run")) + 10
        self.assertIn("--allow-changes", said)
        said = place.ptrain("resume", "run", "optimizer.epps=1e-6", code=2)
        self.assertIn("did you mean", said)
        self.assertEqual((place.root / "run/plan.json").read_bytes(), plan)
        place.recipe(short=7)  # what became of the file it came from does not matter
        with (place.root / "run/recipe.yaml").open("a") as own:
            own.write("seed: 7\n")
        said = place.ptrain("resume", "run", f"shapes.0.steps={steps}", "shapes.1.steps=5",
                            "log.every_steps=5", "--allow-changes")
        self.assertIn("by the run's own", said)
        self.assertIn("run/recipe.yaml was changed since the run began", said)
        self.assertEqual(max(place.metrics("run")), steps + 5)

    def test_falls_back_to_an_older_checkpoint_in_an_earlier_shape(self):
        place = self.place
        place.recipe(long=60)  # far from its end when it is killed; nine checkpoints reach back to 20
        place.run("whole")
        process = place.spawn("run", "recipe.yaml", "--directory", "run", "checkpoint.async=false")
        place.wait_for_step(process, "run", 52)
        place.kill_all(process)
        damage(place.checkpoint("run", 40) / ".metadata")
        later = [path for path in place.checkpoints("run") if path.name > "step-00000040"]
        self.assertTrue(later)
        for path in later:
            damage(path / "__0_0.distcp")
        said = place.ptrain("resume", "run")
        for path in [place.checkpoint("run", 40), *later]:
            self.assertIn(path.name, said)
        self.assertIn("damaged", said)
        self.assertEqual([event["shape"] for event in place.events("run", "shape_started")][-2:],
                         ["short", "long"])
        self.same_steps(place.metrics("run"), place.metrics("whole"))

    def test_no_good_checkpoint_is_an_error(self):
        place = self.place
        process = place.spawn("run", "recipe.yaml", "--directory", "run", "checkpoint.async=false")
        place.wait_for_step(process, "run", 22)
        place.kill_all(process)
        (place.checkpoint("run", 10) / "__0_0.distcp").write_bytes(b"")
        for path in place.checkpoints("run")[1:]:
            (path / ".metadata").unlink()
        said = place.ptrain("resume", "run", code=15)
        for part in ("step-00000010/__0_0.distcp has 0 bytes instead of",
                     "step-00000020 is not a checkpoint"):
            self.assertIn(part, said)
        for path in place.checkpoints("run"):
            os.rename(path, place.root / f"gone-{path.name}")
        self.assertIn("none is left", place.ptrain("resume", "run", code=15))

    def test_killed_before_any_checkpoint_begins_again(self):
        place = self.place
        place.run("whole")
        place.recipe(short=ENDLESS)
        process = place.spawn("run", "recipe.yaml", "--directory", "run", "checkpoint.every_steps=0")
        place.wait_for_step(process, "run", 2)
        place.kill_all(process)
        self.assertIn("the beginning", place.ptrain("resume", "run", "shapes.0.steps=40", "--allow-changes"))
        self.same_steps(place.metrics("run"), place.metrics("whole"))

    def test_a_full_disk_costs_no_training(self):
        place = self.place
        place.recipe(short=ENDLESS, long=20)
        process = place.spawn("run", "recipe.yaml", "--directory", "run")
        folder = place.root / "run/checkpoints"
        while not folder.exists():
            self.assertIsNone(process.poll())
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            place.kill_all(process)
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        place.wait_for_step(process, "run", 21)
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(65536)):
                    pass
            except OSError:
                pass
        while not place.events("run", "checkpoint_failed"):
            self.assertIsNone(process.poll(), place.output.read_text())
        kept = [path for path in folder.iterdir() if path.name.startswith("step-")]
        self.assertTrue(kept, "no good checkpoint is left")
        (folder / "filler").unlink()
        self.stop(process)
        self.assertIn("No space left on device", place.output.read_text())
        steps = sorted(place.metrics("run"))
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertTrue((folder / f"step-{len(steps):08}/.metadata").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
