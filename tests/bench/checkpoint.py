#!/usr/bin/env python3
"""A checkpoint of one rank beside a raw write of the same bytes and beside stock PyTorch, interleaved.

  tests/bench/checkpoint.py FOLDER [--mib 1024] [--rounds 5] [--bench build/dev/tests/bench/bench_checkpoint]

FOLDER lies on the disk to measure. Loads come from the page cache. Read the ratios: each is that of its own round.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--mib", type=int, default=1024)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--bench", default=ROOT / "build/dev/tests/bench/bench_checkpoint")
options = parser.parse_args()
work = options.folder / "checkpoint-bench"
stock = [ROOT / ".venv/bin/python", pathlib.Path(__file__).with_name("stock_checkpoint.py")]
RUNS = {name: [options.bench, name] for name in ("raw", "save", "behind", "load", "raw_load")}
RUNS |= {f"stock {name}": [*stock, name] for name in ("save", "load")}


def times(command):
    text = subprocess.run([str(part) for part in (*command, work, options.mib)], check=True, text=True,
                          capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout
    return json.loads(text)


work.mkdir(parents=True)
try:
    rounds = [{name: times(command) for name, command in RUNS.items()} for _ in range(options.rounds)]
finally:
    shutil.rmtree(work)
for name in RUNS:
    print(f"{name:10s}", *(f"  {measure} {statistics.median(found[name][measure] for found in rounds):6.3f}"
                           for measure in ("s", "cpu_s")))
for first, second, measure in (("raw", "save", "s"), ("behind", "save", "s"), ("stock save", "save", "s"),
                               ("stock load", "load", "s"), ("stock load", "load", "cpu_s"),
                               ("stock load", "raw_load", "s")):
    values = sorted(found[first][measure] / found[second][measure] for found in rounds)
    print(f"{first} / {second} in {measure}: {statistics.median(values):.2f}  ({values[0]:.2f}-{values[-1]:.2f})")
