#!/usr/bin/env python3
"""Verifies many layouts against one device, bit for bit: see verify_grid.cpp. A line each; the last one counts them.

Usage: verify_grid.py PROGRAM full|small threads|mpi|all [ONLY]
Layouts whose name does not hold ONLY ("mpi workers=3", "schedule=zb-h1 size=5") are passed over.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "comm"))
from mpirun import environment  # noqa: E402

LIMIT = 1800  # seconds, of each run

# Rows of the grid: how it is started, and what verify_grid gets.
RESNET50 = "model=resnet50"
FULL = (
    [("threads", f"{RESNET50} workers={n}") for n in (1, 2, 3, 4)]
    + [("mpi", f"{RESNET50} workers={n}") for n in (2, 3, 4)]
    + [(start, f"{RESNET50} workers=2 replicas=2 sizes=1,3") for start in ("threads", "mpi")]
    + [(start, f"{RESNET50} workers=2 replicas=2 sizes=3 bn=sync") for start in ("threads", "mpi")]
    + [("threads", f"{RESNET50} workers=2 sizes=3 recompute=1"), ("threads", f"{RESNET50} workers=2 sizes=3 bn=deferred")]
)
SMALL = [
    ("threads", "workers=2 sizes=3 steps=2"),
    ("threads", "workers=4 sizes=2 steps=2 schedules=1f1b,zb-h1"),
    ("threads", "workers=2 replicas=2 sizes=3 steps=2 bn=sync schedules=interleaved"),
    ("threads", "workers=2 sizes=5 steps=2 recompute=1 schedules=zb-h1"),
    ("mpi", "workers=2 sizes=3 steps=2"),
    ("mpi", "workers=2 replicas=2 sizes=5 steps=2 schedules=zb-h1"),
    ("mpi", "workers=2 replicas=2 sizes=3 steps=2 bn=sync schedules=1f1b"),
]


def value(words, name):
    found = re.search(rf"\b{name}=(\d+)", words)
    return int(found.group(1)) if found else 1


def command_of(program, start, words, only):
    command = [program, *words.split(), "only=" + only]
    if start == "threads":
        return command
    ranks = value(words, "workers") * value(words, "replicas")
    return ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", str(ranks), *command]


def run(command):
    """(equal, not equal) of a run, whose lines are shown as they come."""
    counts = None
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            found = re.fullmatch(r"(\d+) equal, (\d+) not equal\n", line)
            if found:
                counts = int(found.group(1)), int(found.group(2))
            else:
                print(line, end="", flush=True)
        code = process.wait(timeout=LIMIT)
    if counts is None or code not in (0, 1):
        print(f"FAILED with code {code}: {' '.join(command)}", flush=True)
        return 0, 1
    return counts


def main():
    program, size, start, *rest = sys.argv[1:]
    rows = {"full": FULL, "small": SMALL}[size]
    only = rest[0] if rest else ""
    equal = different = 0
    for row, words in rows:
        if start in ("all", row):
            counts = run(command_of(os.path.abspath(program), row, words, only))
            equal, different = equal + counts[0], different + counts[1]
    print(f"{equal} layouts equal to one device, {different} not")
    sys.exit(0 if equal > 0 and different == 0 else 1)


if __name__ == "__main__":
    main()
