#!/usr/bin/env python3
"""The shipped engine has no planted bug and no fault point. shipped_is_clean.py BUILD_DIR"""

import pathlib
import subprocess
import sys

WORDS = [b"PTRAIN_TEST_", b"publish.renamed", b"train.gather.start", b"stale_gather",
         b"kill_whole_run"]


def found(module, words):
    content = module.read_bytes()
    return [word for word in words if word in content]


def symbols(module):
    text = subprocess.run(["nm", "-D", "--defined-only", module], capture_output=True, text=True,
                          check=True).stdout
    return [line.split()[-1] for line in text.splitlines()]


def main():
    build = pathlib.Path(sys.argv[1])
    shipped = build / "bin" / "libptrain_engine.so"
    planted = build / "tests" / "planted_bin" / "libptrain_engine.so"
    problems = []
    if left := found(shipped, WORDS):
        problems.append(f"the shipped module holds {left}")
    if len(found(planted, WORDS[:4])) != 4:
        problems.append("the test module lacks what this test looks for")
    for module in (shipped, planted):
        if symbols(module) != ["ptrain_engine_main"]:
            problems.append(f"{module} exports {symbols(module)}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
