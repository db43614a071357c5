#!/usr/bin/env python3
"""Runs `meson test` in a build folder and counts what passed, test case by test case.

Usage: run_tests.py BUILD [arguments of meson test]
The last line is `N passed, N failed, N skipped`. The exit code is 1 if anything failed or nothing ran.
A program of Catch2 counts as its test cases, one of Python's unittest as its tests, any other as one.
A program that failed in any way (crash, time-out, wrong exit code) counts at least one failure.
"""
import json
import os
import re
import subprocess
import sys

CATCH_ALL_PASSED = re.compile(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)", re.M)
CATCH_NONE = re.compile(r"^No tests ran", re.M)
CATCH_CASES = re.compile(r"^test cases: +(\d+) \|(.*)$", re.M)
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_END = re.compile(r"^(?:OK|FAILED) \((.*)\)$", re.M)


def catch_counts(text):
    """(passed, failed, skipped) from the summary of Catch2 2 or 3; the worst one where ranks print several."""
    found = [(int(n), 0, 0) for n in CATCH_ALL_PASSED.findall(text)]
    found += [(0, 0, 0) for _ in CATCH_NONE.findall(text)]
    for total, parts in CATCH_CASES.findall(text):
        words = {word: int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", parts)}
        skipped = words.get("skipped", 0)
        passed = words.get("passed", 0)
        found.append((passed, int(total) - passed - skipped, skipped))
    return max(found, key=lambda counts: counts[1], default=None)


def unittest_counts(text):
    """(passed, failed, skipped) from the summary of Python's unittest."""
    ran = UNITTEST_RAN.search(text)
    if not ran:
        return None
    end = UNITTEST_END.search(text, ran.end())
    words = dict(re.findall(r"([a-z ]+)=(\d+)", end.group(1))) if end else {}
    words = {word.strip(): int(n) for word, n in words.items()}
    skipped = words.get("skipped", 0)
    failed = words.get("failures", 0) + words.get("errors", 0)
    return int(ran.group(1)) - failed - skipped, failed, skipped


def counts_of(test):
    """(passed, failed, skipped) of one entry of meson's testlog.json."""
    result = test["result"]
    if result == "SKIP":
        return 0, 0, 1
    good = result in ("OK", "EXPECTEDFAIL")
    counts = catch_counts(test.get("stdout", "")) or unittest_counts(test.get("stderr", ""))
    if counts is None:
        return (1, 0, 0) if good else (0, 1, 0)
    passed, failed, skipped = counts
    if not good:
        failed = max(failed, 1)
    elif passed + failed + skipped == 0:
        failed = 1  # a test program that holds no test
    return passed, failed, skipped


def count(log_lines):
    totals = [0, 0, 0]
    for line in log_lines:
        for i, n in enumerate(counts_of(json.loads(line))):
            totals[i] += n
    return tuple(totals)


def main(arguments):
    build, rest = arguments[0], arguments[1:]
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)  # a log of an earlier run must not be counted
    command = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", *rest]
    status = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
    if "--list" in rest:
        return status
    lines = []
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    passed, failed, skipped = count(lines)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or status or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
