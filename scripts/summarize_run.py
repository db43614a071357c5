#!/usr/bin/env python3
"""Prints what a metrics file says in the end: test top-1, top-5, seconds of training.

Usage: summarize_run.py METRICS.jsonl
"""
import json
import sys


def last_of(path):
    """{type: the last line of that type}."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            found[line["type"]] = line
    return found


def summary(lines):
    if "eval" not in lines or "end" not in lines:
        raise SystemExit("the run did not come to its end: no `eval` or no `end` line in its metrics")
    score, end = lines["eval"], lines["end"]
    return [f"test top-1   {100 * score['top1']:.2f} % of {score['images']} images (top-5 {100 * score['top5']:.2f} %)",
            f"training     {end['seconds']:.0f} s, {end['steps']} steps"]


if __name__ == "__main__":
    print("\n".join(summary(last_of(sys.argv[1]))))
