#!/usr/bin/env python3
"""Shows that check.py sees a breach of each rule: planted_test.py CHECK ENGINE (a file that links torch)."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

CHECK, ENGINE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])

CLEAN = {
    "README.md": "Read `docs/architecture.md`.\n",
    "docs/architecture.md": "| `core/base/` | `launcher/plan/` | `engine/comm/` | `cli/` | `tests/unit/` |\n",
    "core/base/a.h": "#pragma once\n#include <string>\n",
    "launcher/plan/a.cc": '#include "core/base/a.h"\n',
    "engine/comm/a.cc": '#include "core/base/a.h"\n#include <mpi.h>\n',
    "cli/main.cc": '#include "engine/entry.h"\n#include "launcher/plan/a.h"\n',
    "tests/unit/a_test.cc": "// A test.\n",
}
# Rule, file, text that is added to it, what the check must say.
BREACHES = [
    ("includes", "core/base/a.h", '#include "launcher/plan/a.h"\n', "core may not include launcher"),
    ("includes", "launcher/plan/a.cc", '#include "engine/entry.h"\n', "launcher may not include engine"),
    ("includes", "engine/comm/a.cc", '#include "launcher/plan/a.h"\n', "engine may not include launcher"),
    ("includes", "cli/main.cc", '#include "engine/comm/a.h"\n', "cli may not include engine/comm"),
    ("includes", "launcher/plan/a.cc", "#include <ATen/ATen.h>\n", "only the engine may include"),
    ("includes", "engine/comm/a.cc", "#include <cuda_runtime.h>\n", "cuda_runtime.h belongs to"),
    ("includes", "core/base/a.h", "#include <fstream>\n", "core is pure"),
    ("includes", "engine/comm/a.cc", "#include <torch/torch.h>\n", "costs 13 s"),
    ("docs", "README.md", "See `core/base/none.h`.\n", "core/base/none.h does not exist"),
    ("docs", "core/new/a.h", "#pragma once\n", "does not place core/new/"),
    ("budgets", "core/base/a.h", "\n" * 150, "the limit is 150"),
    ("budgets", "cli/main.cc", "// " + "x" * 98 + "\n", "the limit is 100"),
    ("budgets", "engine/comm/a.cc", "\n" * 700, "the limit is 700"),
    ("budgets", "cli/main.cc", "int f() {\n" + "  g();\n" * 80 + "}\n", "a function of 82 lines"),
    ("words", "cli/main.cc", "// TO" "DO: later\n", "left for later"),
    ("words", "README.md", "cd /wo" "rk/main\n", "a path of one machine"),
]


def check(root, rule):
    return subprocess.run([sys.executable, CHECK, root, root / "build", rule], capture_output=True, text=True)


def make_tree(root):
    for name, text in CLEAN.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "build" / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", root / "build" / "bin" / "ptrain")


def misses(root, rule, file, text, expected):
    path = root / file
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((before or "") + text)
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)
    found = check(root, rule)
    if before is None:
        path.unlink()
    else:
        path.write_text(before)
    if found.returncode == 0 or expected not in found.stdout:
        yield f"{rule}: `{text.strip()[:60]}` in {file} is not seen as '{expected}': {found.stdout}{found.stderr}"


def main():
    failures = []
    with tempfile.TemporaryDirectory(prefix="ptrain-layering-") as folder:
        root = pathlib.Path(folder)
        make_tree(root)
        for rule in ("includes", "links", "docs", "budgets", "words"):
            found = check(root, rule)
            if found.returncode != 0:
                failures.append(f"{rule}: a clean tree fails: {found.stdout}{found.stderr}")
        for breach in BREACHES:
            failures += misses(root, *breach)
        shutil.copy(ENGINE, root / "build" / "bin" / "ptrain")
        if "the control plane starts without it" not in check(root, "links").stdout:
            failures.append("links: a binary that links torch is not seen")
    print("\n".join(failures) or f"{len(BREACHES) + 1} breaches seen")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
