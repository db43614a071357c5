#!/usr/bin/env python3
"""Writes schedule_NAME.txt: the tables of each schedule for 2, 3 and 4 workers, from the rules as they are
published, without the program. Usage: make_schedules.py [FOLDER]

Each table is a head line and a line per worker. Version 1.
"""
import os
import sys

MICRO_BATCHES = (1, 3, 6)


def warm_up(r, p, m):
    return min(p - 1 - r, m)


def fill_drain(r, p, m):
    return [("F", r, k) for k in range(m)] + [(op, r, k) for k in range(m) for op in "IW"]


def one_f_one_b(r, p, m):
    w = warm_up(r, p, m)
    forwards, backwards = [("F", r, k) for k in range(m)], [[("I", r, k), ("W", r, k)] for k in range(m)]
    line, rest = forwards[:w], forwards[w:]
    for pair in backwards:
        line += rest[:1] + pair
        rest = rest[1:]
    return line


def zb_h1(r, p, m):
    line = [step for step in one_f_one_b(r, p, m) if step[0] != "W"]
    for k in range(r, m):
        line.insert(line.index(("I", r, k)) + 1, ("W", r, k - r))
    return line + [("W", r, k) for k in range(max(0, m - r), m)]


def interleaved(r, p, m, v=2):
    groups = [range(first, first + p) for first in range(0, m, p)]
    forwards = [("F", c * p + r, k) for group in groups for c in range(v) for k in group]
    backwards = [(c * p + r, k) for group in groups for c in reversed(range(v)) for k in group]
    w = min((v - 1) * p + 2 * (p - 1 - r), len(forwards))
    line = forwards[:w]
    for i, (stage, k) in enumerate(backwards):
        line += forwards[w + i:w + i + 1] + [("I", stage, k), ("W", stage, k)]
    return [step for step in line if step[2] < m]


def complete(line, stages):
    """Adds transfers, AR and ST."""
    last_weight = {stage: i for i, (op, stage, _) in enumerate(line) if op == "W"}
    words = []
    for i, (op, stage, k) in enumerate(line):
        first, last = stage == 0, stage == stages - 1
        before = {"F": "" if first else "RA", "I": "" if last else "RG"}.get(op)
        after = {"F": "" if last else "SA", "I": "" if first else "SG"}.get(op)
        words += [f"{name} {stage}.{k}" for name in (before, op, after) if name]
        if last_weight[stage] == i:
            words.append(f"AR {stage}")
    return "  ".join(words + [f"ST {stage}" for stage in sorted(last_weight)])


def table(name, line, p, m):
    stages = 2 * p if name == "interleaved" else p
    head = f"# {name}, {p} workers, {stages} stages, {m} micro-batches\n"
    return head + "".join(complete(line(r, p, m), stages) + "\n" for r in range(p))


def main(arguments):
    folder = arguments[0] if arguments else os.path.dirname(os.path.abspath(__file__))
    schedules = {"fill-drain": fill_drain, "1f1b": one_f_one_b, "interleaved": interleaved, "zb-h1": zb_h1}
    for name, line in schedules.items():
        with open(os.path.join(folder, f"schedule_{name}.txt"), "w", encoding="utf-8") as file:
            file.write("".join(table(name, line, p, m) for p in (2, 3, 4) for m in MICRO_BATCHES))


if __name__ == "__main__":
    main(sys.argv[1:])
