#!/usr/bin/env python3
"""Checks the structure of the tree. check.py SOURCE_DIR BUILD_DIR [includes|links|docs|budgets|words]"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve()

# Which rooms a room may include.
ARROWS = {
    "core": {"core"},
    "launcher": {"core", "launcher"},
    "engine": {"core", "engine"},
    "cli": {"core", "launcher", "cli"},
}
HEAVY = re.compile(r"^(torch|ATen|c10|mpi\.h|pmix|nccl|cuda)")
# What runs on GPUs is written in few places, so that all else is one code.
GPU = re.compile(r"^(cuda|cublas|nccl)")
GPU_PLACES = ("engine/kernels/cuda/", "engine/optim/cuda/", "engine/comm/nccl.cc", "engine/base/device_cuda.cc",
              "engine/base/host_memory_cuda.cc",
              "engine/base/cuda_check.h")
# core is values and pure algorithms: no clock, no environment, no files.
IMPURE = {"chrono", "fstream", "filesystem", "unistd.h", "thread", "ctime", "sys/stat.h", "fcntl.h"}
CODE = (".cc", ".h", ".cu")


def sources(*rooms):
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in CODE:
                yield path


def name(path):
    return path.relative_to(ROOT).as_posix()


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def check_includes():
    for path in sources(*ARROWS):
        room = path.relative_to(ROOT).parts[0]
        for number, own, target in includes(path):
            place = f"{name(path)}:{number}"
            other = target.split("/")[0]
            if own and other in ARROWS and other not in ARROWS[room]:
                if not (room == "cli" and target == "engine/entry.h"):
                    yield f"{place}: {room} may not include {target}"
            if room != "engine" and HEAVY.match(target):
                yield f"{place}: only the engine may include {target}"
            if room == "engine" and GPU.match(target) and not name(path).startswith(GPU_PLACES):
                yield f"{place}: {target} belongs to {', '.join(GPU_PLACES)}"
            if room == "core" and target in IMPURE:
                yield f"{place}: core is pure and may not include <{target}>"
            if re.match(r"torch/(torch|all|extension)\.h", target):
                yield f"{place}: {target} costs 13 s of compiling; include what is used"
            if own and target.startswith("ATen") and path.suffix == ".h":
                yield f"{place}: headers may not include {target}"


def needed(binary):
    text = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text.stdout)


def check_links():
    control_plane = [BUILD / "bin" / "ptrain"]
    control_plane += [
        path for path in sorted((BUILD / "tests").glob("unit_*"))
        if re.match(r"unit_(core|launcher|cli)_", path.name)
    ]
    for binary in control_plane:
        if not binary.exists():
            yield f"{binary.name} is not built"
            continue
        for library in needed(binary):
            if re.match(r"lib(torch|c10|mpi|pmix|nccl|cuda)", library):
                yield f"{binary.name} links {library}: the control plane starts without it"


def documents():
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def check_docs():
    for document in documents():
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for path in re.findall(r"`((?:cli|core|launcher|engine|scripts|tests|recipes|configs|docs|cmake)/[^`\s*{}<>]*)`", line):
                if not (ROOT / path).exists():
                    yield f"{name(document)}:{number}: {path} does not exist"
    places = (ROOT / "docs" / "architecture.md").read_text()
    folders = {name(path.parent) for path in sources(*ARROWS)}
    folders |= {name(path) for path in (ROOT / "tests").iterdir() if path.is_dir()}
    for folder in sorted(folders):
        if f"`{folder}/`" not in places:
            yield f"docs/architecture.md does not place {folder}/"


def functions(lines):
    """(first line, number of lines) of each function, by the indentation that clang-format gives."""
    opened = {}
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if indent not in (0, 2):
            continue
        if line.rstrip().endswith("{") and ")" in line or line.rstrip().endswith(") {"):
            if not re.match(r"\s*(namespace|class|struct|enum|extern|if|for|while|switch|\})", line):
                opened.setdefault(indent, number)
        elif re.match(r"\s*\}", line) and indent in opened:
            first = opened.pop(indent)
            yield first, number - first + 1


def check_budgets():
    for path in sources(*ARROWS, "tests"):
        lines = path.read_text().splitlines()
        limit = 150 if path.suffix == ".h" and "tests" not in path.parts else 700
        if len(lines) > limit:
            yield f"{name(path)} has {len(lines)} lines; the limit is {limit}"
        for number, line in enumerate(lines, 1):
            if len(line) > 100:
                yield f"{name(path)}:{number} has {len(line)} columns; the limit is 100"
        for first, length in functions(lines):
            if length > 80:
                yield f"{name(path)}:{first}: a function of {length} lines; the limit is 80"


def check_words():
    """Nothing of one machine, and nothing left for later."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
    for file in listed.stdout.splitlines():
        path = ROOT / file
        if file.startswith("tests/") and path.suffix not in CODE + (".py", ".md", ".txt"):
            continue
        if file == "tests/layering/check.py" or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                yield f"{file}:{number}: left for later: {line.strip()}"
            if re.search(r"(^|[^A-Za-z.])/(work|farm|root)/", line):
                yield f"{file}:{number}: a path of one machine: {line.strip()}"


CHECKS = {
    "includes": check_includes,
    "links": check_links,
    "docs": check_docs,
    "budgets": check_budgets,
    "words": check_words,
}


def main():
    failures = [problem for what in sys.argv[3:] or CHECKS for problem in CHECKS[what]()]
    for problem in failures:
        print(problem)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
