#!/usr/bin/env python3
"""Writes what a run measured in a form that other programs read. Needs Python alone, but for --wandb.

    export_metrics.py RUN --tensorboard FOLDER    then: tensorboard --logdir FOLDER
    export_metrics.py RUN --csv FILE
    export_metrics.py RUN --wandb FOLDER          with the Python package wandb: an offline run of Weights & Biases;
                                                  then: wandb sync what it prints

Validation losses come from the run's events. Damaged lines are skipped and counted. The metrics have no clock: a
step's time is that of the run's first event and the seconds of all steps before it.
"""

import argparse
import csv
import datetime
import hashlib
import json
import math
import pathlib
import struct
import sys

NAMES = ("loss", "grad_norm", "learning_rate", "tokens_total", "step_s", "tokens_per_s", "mfu", "bytes_peak",
         "balance_loss", "z_loss", "router_entropy", "largest_load", "idle_experts", "dropped")


def objects(path):
    """The JSON objects of a file with one a line, and how many lines are none."""
    good, damaged = [], 0
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            good.append(value)
        else:
            damaged += 1
    return good, damaged


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def rows_of(run):
    """(seconds since 1970, step, {name: number}) of every step and validation, by step."""
    metrics, damaged = objects(run / "metrics.jsonl")
    events, more = objects(run / "events.jsonl")
    if damaged + more:
        print(f"{damaged + more} damaged lines are left out", file=sys.stderr)
    start = next((e["time"] for e in events if isinstance(e.get("time"), str)), "1970-01-01T00:00:00Z")
    seconds = datetime.datetime.fromisoformat(start.replace("Z", "+00:00")).timestamp()
    rows, times = [], {}
    for line in metrics:
        if not isinstance(line.get("step"), int):
            continue
        seconds += line["step_s"] if is_number(line.get("step_s")) else 0
        times[line["step"]] = seconds
        rows.append((seconds, line["step"], {name: line[name] for name in NAMES if is_number(line.get(name))}))
    for event in events:
        if event.get("kind") == "validation" and isinstance(event.get("step"), int) and is_number(event.get("loss")):
            rows.append((times.get(event["step"], seconds), event["step"], {"validation_loss": event["loss"]}))
    return sorted(rows, key=lambda row: row[1])


def make_crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    """The checksum as TFRecord files hold it: rotated, so that a checksum of data with checksums stays good."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, data):
    """A field of a protobuf message that holds bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(seconds, step, values):
    """TensorFlow's Event: wall_time 1, step 2, summary 5 of values 1 with tag 1 and simple_value 2."""
    summary = b"".join(field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
                       for tag, value in values.items() if abs(value) < 3e38)
    return b"\x09" + struct.pack("<d", seconds) + b"\x10" + varint(max(step, 0)) + field(5, summary)


def write_tensorboard(rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    first = rows[0][0] if rows else 0.0
    path = folder / f"events.out.tfevents.{int(first)}.ptrain"
    version = b"\x09" + struct.pack("<d", first) + field(3, b"brain.Event:2")
    path.write_bytes(record(version) + b"".join(record(event(*row)) for row in rows))
    return path


def write_csv(rows, path):
    names = [*NAMES, "validation_loss"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "time", *names])
        for seconds, step, values in rows:
            writer.writerow([step, seconds, *(values.get(name, "") for name in names)])
    return path


def write_wandb(run, rows, folder):
    """An offline run whose id is the run directory's place, so that exporting and syncing again changes one run."""
    try:
        import wandb
    except ImportError:
        sys.exit("export_metrics.py: --wandb needs the Python package wandb here: pip install wandb")
    folder.mkdir(parents=True, exist_ok=True)
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    place = str(run.resolve())
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True)
    offline = wandb.init(mode="offline", dir=folder, project=run.resolve().parent.name, name=run.resolve().name,
                         id=hashlib.sha256(place.encode()).hexdigest()[:16], config=plan, settings=settings)
    for seconds, step, values in rows:
        offline.log({"time": seconds, **values}, step=step)
    offline.finish()
    return pathlib.Path(offline.dir).parent


WRITERS = {"tensorboard": lambda run, rows, path: write_tensorboard(rows, path),
           "csv": lambda run, rows, path: write_csv(rows, path),
           "wandb": write_wandb}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--tensorboard", type=pathlib.Path, metavar="FOLDER")
    where.add_argument("--csv", type=pathlib.Path, metavar="FILE")
    where.add_argument("--wandb", type=pathlib.Path, metavar="FOLDER")
    args = parser.parse_args()
    if not (args.run / "plan.json").exists():
        sys.exit(f"export_metrics.py: {args.run} is not a run directory: it has no plan.json")
    rows = rows_of(args.run)
    for name, write in WRITERS.items():
        if (path := getattr(args, name)) is not None:
            print(write(args.run, rows, path))


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"export_metrics.py: {error}")
