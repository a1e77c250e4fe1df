#!/usr/bin/env python3
"""Every test that docs/complaints.md and docs/launching.md name exists. complaints_test.py SOURCE"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TEXT = "".join((ROOT / "docs" / name).read_text() for name in ("complaints.md", "launching.md"))
tests = set()
for path in (ROOT / "tests").rglob("*.cc"):
    tests |= {".".join(name) for name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", path.read_text())}
    tests |= {".".join(name) for name in re.findall(r"RC_GTEST_PROP\(\s*(\w+),\s*(\w+)", path.read_text())}
named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", TEXT)) - {"Suite.Test"}
folders = set(re.findall(r"golden `(\w+)`", TEXT))
paths = set(re.findall(r"`(tests/[\w/.]+)`", TEXT))
missing = sorted(named - tests) + [name for name in folders if not (ROOT / "tests/golden/recipe" / name).is_dir()]
missing += [path for path in paths if not (ROOT / path).exists()]
assert named and folders and paths and not missing, missing
print(len(named), "tests,", len(folders), "golden recipes and", len(paths), "programs exist")
