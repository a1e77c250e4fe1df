#!/usr/bin/env python3
"""ptrain data --lengths: what it counts and how well each strategy packs, by hand. data_lengths_test.py PTRAIN"""

import json
import pathlib
import subprocess
import sys
import tempfile

PTRAIN = sys.argv[1]
# Rows of 10. The document of 20 fills two; an empty one and an empty line count as nothing. Of the others in order
# next fit makes [3 4] [5] [7] [5] [6], first fit [3 4] [5 5] [7] [6], best fit decreasing [7 3] [6 4] [5 5].
LENGTHS = "20\n3\n4\n0\n5\n\n7\r\n5\n6"
ROWS = {"next_fit": 2 + 5, "first_fit": 2 + 4, "best_fit_decreasing": 2 + 3}
TOKENS = 50
HISTOGRAM = [(2, 3, 1, 3), (4, 7, 5, 27), (8, 15, 0, 0), (16, 31, 1, 20)]  # from, to, documents, tokens


def data(*arguments):
    return subprocess.run([PTRAIN, "data", *map(str, arguments)], capture_output=True, text=True)


def check_json(file):
    done = data("--lengths", file, "--capacity", 10, "--json")
    assert done.returncode == 0, done.stderr
    survey = json.loads(done.stdout)
    counts = {key: survey[key] for key in ("capacity", "documents", "tokens", "longest", "cut_documents")}
    assert counts == dict(capacity=10, documents=7, tokens=TOKENS, longest=20, cut_documents=1), counts
    histogram = [tuple(row[key] for key in ("least", "most", "documents", "tokens")) for row in survey["histogram"]]
    assert histogram == HISTOGRAM, histogram
    assert {name: packed["rows"] for name, packed in survey["packing"].items()} == ROWS, survey["packing"]
    for name, packed in survey["packing"].items():
        assert abs(packed["efficiency"] - TOKENS / (10 * ROWS[name])) < 1e-12, (name, packed)


def check_text(file):
    done = data("--lengths", file, "--capacity", 10)
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in ("7 documents, 50 tokens, the longest has 20", "4 - 7 5 27 " + 40 * "#", "16 - 31 1 20 " + 8 * "#",
                 "rows of 10 tokens: 1 documents are longer and are cut", "next_fit 7 rows, 71.43 % full",
                 "first_fit 6 rows, 83.33 % full", "best_fit_decreasing 5 rows, 100.00 % full"):
        assert line in lines, (line, done.stdout)


def check_refusals(file):
    for text, arguments, reason in (
            ("3\n-4\n", ("--capacity", 10), f"{file}:2:1"),
            ("3\n4 tokens\n", ("--capacity", 10), "not a length in tokens"),
            ("\n\n", ("--capacity", 10), "holds no length"),
            ("3\n", (), "--lengths needs --capacity"),
            ("3\n", ("--capacity", 0), "--capacity")):
        file.write_text(text)
        done = data("--lengths", file, *arguments)
        assert done.returncode == 2 and reason in done.stderr and not done.stdout, (text, arguments, done)


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "lengths.txt"
    path.write_bytes(LENGTHS.encode())
    check_json(path)
    check_text(path)
    check_refusals(path)
print("as by hand")
