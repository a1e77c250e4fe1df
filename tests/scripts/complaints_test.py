#!/usr/bin/env python3
"""Every test that docs/complaints.md and docs/launching.md name exists, and of the 75 complaints about launchers as many
are played on the test cluster as should be. complaints_test.py SOURCE"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1])
sys.path.append(str(ROOT / "tests" / "cluster"))

import faults  # noqa: E402

COMPLAINTS = (ROOT / "docs" / "complaints.md").read_text()
TEXT = COMPLAINTS + (ROOT / "docs" / "launching.md").read_text()
PROGRAMS = (ROOT / "tests" / "cluster" / "CMakeLists.txt").read_text()


def tests_of_cluster():
    """FILE.test_... of all programs that ctest runs, and the faults of a campaign."""
    names = {f"campaign.{fault.__name__}" for deck in faults.DECKS.values() for fault in deck}
    for path in (ROOT / "tests" / "cluster").glob("*_test.py"):
        if f" {path.name} " in PROGRAMS:
            stem = path.stem.removesuffix("_test")
            names |= {f"{stem}.{name}" for name in re.findall(r"^    def (test_\w+)\(self", path.read_text(), re.M)}
    return names


def check_names():
    tests = tests_of_cluster()
    for path in (ROOT / "tests").rglob("*.cc"):
        text = path.read_text()
        tests |= {".".join(name) for name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", text)}
        tests |= {".".join(name) for name in re.findall(r"RC_GTEST_PROP\(\s*(\w+),\s*(\w+)", text)}
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+|[a-z]+\.test_\w+|campaign\.[a-z]\w+)`", TEXT)) - {"Suite.Test"}
    folders = set(re.findall(r"golden `(\w+)`", TEXT))
    paths = set(re.findall(r"`(tests/[\w/.]+)`", TEXT))
    missing = sorted(named - tests) + [name for name in folders if not (ROOT / "tests/golden/recipe" / name).is_dir()]
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert named and folders and paths and not missing, missing
    print(len(named), "tests,", len(folders), "golden recipes and", len(paths), "programs exist")


def check_coverage():
    """75 rows, 20 of them starred; none without a test or a reason."""
    sections = re.findall(r"^## ([A-I])\. .*?\n(.*?)(?=^## )", COMPLAINTS, re.M | re.S)
    sizes = {letter: len(re.findall(r"^\| ★? ?\|", text, re.M)) - 1 for letter, text in sections}  # but for the head
    assert sizes == dict(A=11, B=9, C=8, D=6, E=7, F=7, G=7, H=9, I=11), sizes
    rows = [[cell.strip() for cell in line.split(" | ")] for _, text in sections
            for line in text.replace("|  |", "| |").replace("| |", "|  |").splitlines() if line.startswith("| ")]
    rows = [row for row in rows if "reported in" not in row]
    starred = [row for row in rows if row[0] == "| ★"]
    played = [row for row in rows if re.search(r"`\w+\.test_\w+`|`campaign\.\w+`", row[3])]
    for row in rows:
        assert row in played or len(row[4]) > 3, row
    counts = len(rows), len(starred), len([row for row in starred if row in played])
    others = len(played) - counts[2]
    assert counts == (75, 20, 20) and others >= 20, (counts, others)
    print(f"on the cluster: {counts[2]} of 20 starred complaints, {others} of the 55 others")


check_names()
check_coverage()
