#!/usr/bin/env python3
"""scripts/export_metrics.py: bytes of TensorBoard's format worked out by hand, and damaged lines. Its records are read
back by TensorFlow's rules. export_metrics_test.py SOURCE"""

import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
import export_metrics as exporter  # noqa: E402

LINE = '{"attempt":1,"step":%d,"shape":"s","loss":%s,"step_s":0.5,"learning_rate":0.001}\n'

# What is called of the package wandb 0.31, and its rule that steps never go back (data of an earlier one is dropped).
FAKE_WANDB = '''
import json
class Settings(dict): pass
class Run:
    def __init__(self, mode, dir, project, name, id, config, settings):
        assert mode == "offline" and len(id) == 16
        self.dir, self.text, self.last = f"{dir}/wandb/run/files", [[project, name, config]], -1
    def log(self, values, step):
        assert step >= self.last
        self.last = step
        self.text.append([step, values])
    def finish(self):
        print(json.dumps(self.text))
def init(**options):
    return Run(**options)
'''


def run_in(folder):
    run = pathlib.Path(folder) / "run"
    run.mkdir()
    (run / "plan.json").write_text("{}")
    (run / "metrics.jsonl").write_text(LINE % (1, "5.5") + "{torn\n" + LINE % (300, "null") + "[1]\n" + '{"step":"x"}\n')
    (run / "events.jsonl").write_text('{"kind":"run_created","time":"2026-01-02T00:00:00.000Z"}\n'
                                      '{"kind":"validation","step":300,"loss":4.25,"time":"2026-01-02T00:00:09Z"}\n{"ki')
    return run


def export(run, *arguments, modules="/nonexistent"):
    return subprocess.run([sys.executable, ROOT / "scripts" / "export_metrics.py", run, *arguments],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(modules)})


def check_wandb(folder, run):
    modules = pathlib.Path(folder) / "modules"
    modules.mkdir()
    (modules / "wandb.py").write_text("raise ImportError")
    done = export(run, "--wandb", f"{folder}/w", modules=modules)
    assert done.returncode == 1 and "pip install wandb" in done.stderr, done
    (modules / "wandb.py").write_text(FAKE_WANDB)
    done = export(run, "--wandb", f"{folder}/w", modules=modules)
    logged, printed = done.stdout.splitlines()
    assert printed == f"{folder}/w/wandb/run", done
    head, *rows = json.loads(logged)
    assert head == [pathlib.Path(folder).name, "run", {}]
    assert [step for step, _ in rows] == [1, 300, 300]
    assert rows[0][1]["loss"] == 5.5 and "loss" not in rows[1][1] and rows[2][1]["validation_loss"] == 4.25


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert data[8:12] == exporter.masked(data[:8])
        body, crc, data = data[12:12 + length], data[12 + length:16 + length], data[16 + length:]
        assert crc == exporter.masked(body)
        yield body


def main():
    assert exporter.crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert exporter.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    # wall_time 1.0, step 300 = AC 02, summary of 13 bytes, value of 11: tag "loss", 5.5 = 0x40B00000
    assert exporter.event(1.0, 300, {"loss": 5.5}).hex() == (
        "09000000000000f03f" "10ac02" "2a0d" "0a0b" "0a046c6f7373" "150000b040")
    with tempfile.TemporaryDirectory() as folder:
        run = run_in(folder)
        done = export(run, "--tensorboard", f"{folder}/tb")
        assert done.returncode == 0 and "3 damaged lines" in done.stderr, done
        bodies = list(records(pathlib.Path(done.stdout.strip()).read_bytes()))
        assert len(bodies) == 4 and b"brain.Event:2" in bodies[0]
        assert b"loss\x15" + struct.pack("<f", 5.5) in bodies[1]
        assert b"loss" not in bodies[2] and b"learning_rate" in bodies[2]  # a loss that is no number
        assert b"validation_loss\x15" + struct.pack("<f", 4.25) in bodies[3]
        done = export(run, "--csv", f"{folder}/m.csv")
        with open(f"{folder}/m.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["step"] for row in rows] == ["1", "300", "300"]
        assert rows[0]["loss"] == "5.5" and rows[1]["loss"] == "" and rows[2]["validation_loss"] == "4.25"
        assert float(rows[1]["time"]) - float(rows[0]["time"]) == 0.5
        assert export(folder, "--csv", f"{folder}/x.csv").returncode != 0  # not a run
        done = export(run, "--csv", f"{folder}/no/x.csv")
        assert done.returncode == 1 and "/no/x.csv" in done.stderr and "Traceback" not in done.stderr, done
        check_wandb(folder, run)
    print("exported")


main()
