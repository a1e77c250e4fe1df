#!/usr/bin/env python3
"""Every fault point is passed by one short run, and none in the shipped engine.

points_test.py PLANTED_BINARY LIST_FAULTS CLUSTER SHIPPED_BINARY"""

import subprocess
import sys

from small_run import Place, read_passes

LEAST = 120


def is_deaf(binary, cluster):
    """Whether an engine finishes a run in spite of an order to kill it, and records nothing."""
    place = Place(binary, cluster)
    if place.start("run", "kill train.step 0 1").wait() != 0:
        print(place.output("run"))
        return False
    record = place.root / "passes"
    place.start("again", f"record {record}").wait()
    return not record.exists()


def main():
    listed = subprocess.run([sys.argv[2]], capture_output=True, text=True, check=True).stdout.split()
    place = Place(sys.argv[1], sys.argv[3])
    record = place.root / "passes"
    code = place.start("run", f"record {record}").wait()
    if code != 0:
        print(place.output("run"))
        return 1
    passed = {name for process in read_passes(record).values() for _, name in process}
    missed = [name for name in listed if name not in passed]
    phases = {}
    for name in listed:
        phases.setdefault(name.split(".")[0], []).append(name)
    print(f"{len(listed)} points:", ", ".join(f"{len(names)} {phase}" for phase, names in phases.items()))
    if missed:
        print("not passed:", *missed)
    deaf = is_deaf(sys.argv[4], sys.argv[3])
    print("the shipped engine", "knows no fault point" if deaf else "OBEYS THE ENVIRONMENT")
    return 1 if missed or len(listed) < LEAST or not deaf else 0


if __name__ == "__main__":
    sys.exit(main())
