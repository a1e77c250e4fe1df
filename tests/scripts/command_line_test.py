#!/usr/bin/env python3
"""Completions and the manual page know every command and option that help shows. PTRAIN_BLESS=1 rewrites
docs/ptrain.1. command_line_test.py SOURCE PTRAIN"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT, PTRAIN = pathlib.Path(sys.argv[1]), sys.argv[2]


def ptrain(*arguments):
    return subprocess.run([PTRAIN, *arguments], capture_output=True, text=True, check=True).stdout


def commands():
    text = ptrain("--help").split("Subcommands:", 1)[1]
    return re.findall(r"^  (\w+) ", text, re.M)


def options(command):
    return set(re.findall(r"^ +(?:-\w,)?(--[\w-]+)", ptrain(command, "--help"), re.M))


def completed(line):
    words = line.split(" ")
    script = (f"source <({PTRAIN} completion bash); COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); "
              f"COMP_CWORD={len(words) - 1}; _ptrain; echo \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


def main():
    names = commands()
    assert {"plan", "run", "resume", "report", "completion"} <= set(names) and "worker" not in names, names
    manual = ptrain("manual")
    path = ROOT / "docs" / "ptrain.1"
    if os.environ.get("PTRAIN_BLESS"):
        path.write_text(manual)
    assert path.read_text() == manual, "run this test with PTRAIN_BLESS=1"
    sections = dict(re.findall(r"^\.SS (\w+)\n(.*?)(?=^\.S[SH] )", manual, re.M | re.S))
    fish = ptrain("completion", "fish")
    assert completed("ptrain re") == {"report", "resume"}, completed("ptrain re")
    for name in names:
        assert name in sections, name
        assert completed(f"ptrain {name} --") == options(name), (name, completed(f"ptrain {name} --"), options(name))
        for option in options(name):
            assert option.replace("-", "\\-") in sections[name], (name, option)
            assert f"_from {name}' -l {option[2:]}" in fish, (name, option)
    assert "_ptrain" in ptrain("completion", "zsh")
    assert subprocess.run([PTRAIN, "completion", "tcsh"], capture_output=True).returncode == 2
    for tool, shell in (("zsh", "zsh"), ("fish", "fish"), ("bash", "bash")):
        if shutil.which(tool):  # its own parser takes the script
            subprocess.run([tool, "-n"], input=ptrain("completion", shell), text=True, check=True)
    if shutil.which("man"):
        warned = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True,
                                env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
        assert warned.returncode == 0 and not warned.stderr, warned.stderr
    print(len(names), "commands")


main()
