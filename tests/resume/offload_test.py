"""Optimizer state on the disk, with the real command: memory, full disks, kills.

    offload_test.py BINARY
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from place import ENDLESS, Place

BINARY = sys.argv.pop(1)
OFFLOADED = "parallel={dp: 1, shard: 2, zero: 3, offload: optimizer}"
RESIDENT = "parallel={dp: 1, shard: 2, zero: 3}"
CONSTANT = "learning_rate.decay=constant"  # whatever the last step is


def state_files():
    """The nameless files of all processes, as paths that can be opened."""
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if ".ptrain-offload-" in os.readlink(link):
                found.append(link)
        except OSError:
            pass
    return found


def punch_out(path):
    """Gives the blocks of a file back; its length stays, and it reads as zeros."""
    keep_size, punch_hole = 1, 2
    with open(path, "rb+") as file:
        size = ctypes.c_long(os.fstat(file.fileno()).st_size)
        fallocate = ctypes.CDLL(None, use_errno=True).fallocate
        if fallocate(file.fileno(), keep_size | punch_hole, ctypes.c_long(0), size) != 0:
            raise OSError(ctypes.get_errno(), "cannot punch a hole")


class Offload(unittest.TestCase):
    def setUp(self):
        self.place = Place(BINARY)
        self.addCleanup(self.place.close)

    def files_of(self, process):
        """Of the ranks of one `ptrain run`, which is the leader of their session."""
        mine = []
        for path in state_files():
            try:
                if os.getsid(int(path.parts[2])) == process.pid:
                    mine.append(path)
            except ProcessLookupError:
                pass
        return mine

    def mount(self, folder, size):
        folder.mkdir(parents=True, exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)

    def stopped_run(self, *layout):
        """A run with a checkpoint after 10 steps or more, of which most are to come."""
        self.place.recipe(short=ENDLESS, long=20)
        process = self.place.spawn("run", "recipe.yaml", "--directory", "run", *layout)
        self.place.wait_for_step(process, "run", 12)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 20, self.place.output.read_text())

    def test_killed_and_resumed_is_exact(self):
        place = self.place
        place.recipe(short=ENDLESS)
        process = place.spawn("run", "recipe.yaml", CONSTANT, "--directory", "killed", OFFLOADED)
        place.wait_for_step(process, "killed", 24)
        self.assertEqual(len(self.files_of(process)), 2)
        place.kill_all(process)
        steps = max(place.metrics("killed")) + 20
        self.assertEqual(list((place.root / "killed/offload").iterdir()), [])
        # As if the kill had come before the file lost its name.
        (place.root / "killed/offload/.ptrain-offload-0").write_bytes(b"stale")
        place.ptrain("resume", "killed", f"shapes.0.steps={steps}", "--allow-changes")
        self.assertEqual(list((place.root / "killed/offload").iterdir()), [])
        place.recipe(short=steps)
        place.run("whole", RESIDENT, CONSTANT)
        whole, killed = place.metrics("whole"), place.metrics("killed")
        self.assertEqual([killed[s]["loss"] for s in sorted(killed)],
                         [whole[s]["loss"] for s in sorted(whole)])

    def test_a_full_disk_is_found_before_training(self):
        place = self.place
        self.stopped_run(RESIDENT)
        done = max(place.metrics("run"))
        self.mount(place.root / "run/offload", "16k")
        said = place.ptrain("resume", "run", OFFLOADED, code=3)
        self.assertIn("cannot reserve", said)
        self.assertIn("No space left on device", said)
        self.assertIn("parallel.offload: none", said)
        self.assertEqual(max(place.metrics("run")), done)

    def test_a_disk_that_fills_in_mid_run_ends_it_with_a_verdict(self):
        place = self.place
        self.stopped_run(RESIDENT)
        folder = place.root / "run/offload"
        self.mount(folder, "16m")
        before = place.checkpoints("run")
        process = place.spawn("resume", "run", OFFLOADED)
        place.wait_for_step(process, "run", max(place.metrics("run")) + 3)
        # Room that is reserved cannot run out, unless somebody takes it away.
        files = self.files_of(process)
        ranks = {int(path.parts[2]) for path in files}
        for rank in ranks:
            os.kill(rank, signal.SIGSTOP)
        for path in files:
            punch_out(path)
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(65536)):
                    pass
            except OSError:
                pass
        for rank in ranks:
            os.kill(rank, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=60), 15, place.output.read_text())
        said = place.output.read_text()
        self.assertIn("cannot write offloaded optimizer state", said)
        self.assertIn("No space left on device", said)
        verdict = json.loads((place.root / "run/verdict.json").read_text())
        self.assertEqual(verdict["code"], 15, verdict)
        self.assertTrue(set(before) & set(place.checkpoints("run")), "a checkpoint is gone")
        (folder / "filler").unlink()
        done = max(place.metrics("run"))
        process = place.spawn("resume", "run")
        place.wait_for_step(process, "run", done + 2)
        place.kill_all(process)

    def test_memory_falls_by_what_is_offloaded(self):
        place = self.place
        place.recipe(short=4, long=1, ranks=1)
        large = ["model={hidden_size: 384, intermediate_size: 768, num_hidden_layers: 12, "
                 "num_attention_heads: 8}", "learning_rate={peak: 1e-3}",
                 "checkpoint.every_steps=0"]
        def of(name, offload):
            place.run(name, *large, f"parallel={{micro_batch: 1, offload: {offload}}}")
            plan = json.loads((place.root / name / "plan.json").read_text())
            optimizer = [entry["bytes"]["optimizer"] for shape in plan["shapes"]
                         for entry in shape["predicted"]["classes"]]
            return max(optimizer), place.metrics(name)[4]["bytes_peak"], place.metrics(name)
        resident, resident_rss, losses = of("resident", "none")
        ring, offloaded_rss, same = of("offloaded", "optimizer")
        self.assertEqual([same[s]["loss"] for s in same], [losses[s]["loss"] for s in losses])
        self.assertLess(ring, resident / 4)
        fell = resident_rss - offloaded_rss
        print(f"predicted {(resident - ring) / 2**20:.1f} MiB less, measured {fell / 2**20:.1f}")
        self.assertGreater(fell, 0.9 * (resident - ring))


if __name__ == "__main__":
    unittest.main(verbosity=2)
