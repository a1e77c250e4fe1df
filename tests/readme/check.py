#!/usr/bin/env python3
"""Compares the README with reality. check.py SOURCE_DIR PTRAIN

The README's run is made again, shortened by overrides. Numbers, paths and layouts are masked; then every line
of its output block must come, in the same order, among the lines of the run; `...` stands for any lines between.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
PTRAIN = pathlib.Path(sys.argv[2]).resolve()
SHORTER = ["shapes.0.steps=3", "shapes.1.steps=2", "learning_rate.warmup_steps=2", "data.max_documents=200",
           "validation.tokens=2048", "validation.sample_tokens=16"]


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def masked(line):
    line = re.sub(r"shape (short|long): \d ranks.* a step is .*", r"shape \1: LAYOUT", line)
    line = re.sub(r"/\S*/runs/\S+|/tmp/\S+", "RUN", line)
    line = re.sub(r"\d+h\d+m|\d+m\d+s|\d+s left", "TIME", line)
    line = re.sub(r"TIME( left)?", "TIME", line)
    line = re.sub(r"[-+]?\d[\d.]*(e[-+]\d+)?[kM]?", "N", line)
    line = re.sub(r"(?<=\S) +", " ", line)   # columns are as wide as their numbers
    return re.sub(r"[GM]iB", "BYTES", line.rstrip())


def check_commands(readme):
    """Every command of a shell block starts with a program of this tree or a known tool."""
    for line in "".join(blocks(readme, "sh")).splitlines():
        program = [word for word in line.split() if "=" not in word][0]
        if program != "cmake" and not (ROOT / program).is_file():
            yield f"README: {program} does not exist"
    if "scripts/test\n" not in blocks(readme, "sh"):
        yield "README does not show scripts/test as a command of its own"


def run_shortened(command, folder):
    words = command.split()
    if words[0] != "scripts/ptrain":
        raise SystemExit(f"README: the first command is {words[0]}, not scripts/ptrain")
    return subprocess.run([PTRAIN, *words[1:], *SHORTER, f"data.cache={folder}/cache", "--directory",
                           f"{folder}/runs/readme"], cwd=ROOT, capture_output=True, text=True)


def check_output(shown, real):
    """Lines of `shown` that do not follow in `real`."""
    lines = iter([masked(line) for line in real.splitlines()])
    for line in shown.splitlines():
        if line != "..." and masked(line) not in lines:
            yield f"README shows `{line}`: a run has no such line there"


def main():
    readme = (ROOT / "README.md").read_text()
    failures = list(check_commands(readme))
    with tempfile.TemporaryDirectory(prefix="ptrain-readme-") as folder:
        run = run_shortened(blocks(readme, "sh")[0], folder)
    if run.returncode != 0:
        failures.append(f"README: the command ended with {run.returncode}")
    failures += check_output(blocks(readme, "text")[0], run.stderr + run.stdout)
    for failure in failures:
        print(failure)
    if failures:
        print("the run said:", run.stderr, run.stdout, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
