#!/usr/bin/env python3
"""docs/known-bugs.md and the planted bugs are one list. table.py SOURCE_DIR"""

import pathlib
import re
import sys

from bugs import CAUGHT_BY

LEAST = 40


def rows(text):
    """(what, from, here) of each row, without heads."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not cells[0].startswith(("---", "what went wrong")):
            yield cells


def problems(source):
    named = set()
    for row in rows((source / "docs" / "known-bugs.md").read_text()):
        if len(row) != 3 or not all(row):
            yield f"not three cells: {row}"
            continue
        bugs = re.findall(r"`([a-z_]+)`", row[2])
        if row[2].startswith("No: "):
            continue
        named |= set(bugs)
        if not bugs:
            yield f"neither a planted bug nor 'No: ' and why: {row[0]}"
    for bug in sorted(named - set(CAUGHT_BY)):
        yield f"{bug} is not planted"
    for bug in sorted(set(CAUGHT_BY) - named):
        yield f"{bug} is planted, but docs/known-bugs.md does not tell where it is known from"
    if len(CAUGHT_BY) < LEAST:
        yield f"{len(CAUGHT_BY)} planted bugs; at least {LEAST}"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
