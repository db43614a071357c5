#!/usr/bin/env python3
"""Runs clang-tidy on the .cpp files of a build folder, on as many at once as there are cores.

Usage: lint.py BUILD [FILE...]
A file that passed is remembered in .cache/lint by a hash of all that the answer depends on (its text, the
texts of our headers that it includes, its compile command, .clang-tidy, clang-tidy's version); only what
changed is read again.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from includes import includes

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PASSED = os.path.join(ROOT, ".cache", "lint")
# What gcc understands and clang does not must not count as a fault.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]


def compiler_headers():
    """What brings gcc's headers after clang's: omp.h is not among those that come with clang-tidy."""
    folder = subprocess.run(["c++", "-print-file-name=include"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [f"--extra-arg=-idirafter{folder.strip()}"]


def read(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def with_headers(path, seen):
    """Adds `path` and the files of ours that it includes to `seen`."""
    if path in seen or not os.path.exists(os.path.join(ROOT, path)):
        return seen
    seen.add(path)
    for _, target, quoted in includes(ROOT, path):
        if quoted:
            with_headers(target, seen)
    return seen


def key_of(path, command, common):
    digest = hashlib.sha256(common)
    digest.update(command.encode())
    for name in sorted(with_headers(path, set())):
        digest.update(name.encode() + b"\0" + read(name) + b"\0")
    return digest.hexdigest()


def commands(build):
    """{path from the root: compile command} of our own .cpp files."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
            if path.endswith(".cpp") and not path.startswith((os.path.relpath(build, ROOT) + "/", "..")):
                found[path] = entry.get("command") or shlex.join(entry["arguments"])
    return found


def lint(build, path, extra):
    """clang-tidy's faults in `path` and the headers it includes, one text each."""
    run = subprocess.run(["clang-tidy", "--quiet", "-p", build, *extra, path], cwd=ROOT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if run.returncode == 0:
        return []
    text = run.stdout.replace(os.path.join(build, "..") + "/", "").replace(ROOT + "/", "")
    faults = re.split(r"^(?=[\w./-]+:\d+:\d+: (?:error|warning))", text, flags=re.M)
    return [fault.rstrip() for fault in faults if fault.strip()] or [f"{path}: {run.stderr.strip()}"]


def lint_once(build, path, key, extra):
    mark = os.path.join(PASSED, key)
    if os.path.exists(mark):
        os.utime(mark)
        return None
    faults = lint(build, path, extra)
    if not faults:
        open(mark, "w", encoding="utf-8").close()
    return faults


def main(arguments):
    build, wanted = os.path.join(ROOT, arguments[0]), arguments[1:]
    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    extra = EXTRA + compiler_headers()
    common = read(".clang-tidy") + version + "\0".join(extra).encode()
    os.makedirs(PASSED, exist_ok=True)
    jobs = {path: key_of(path, command, common) for path, command in commands(build).items()
            if not wanted or path in wanted}
    read_now, failed = 0, 0
    seen = set()  # a fault in a header is met by each file that includes it
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for faults in pool.map(lambda job: lint_once(build, *job, extra), jobs.items()):
            read_now += faults is not None
            failed += bool(faults)
            for fault in faults or []:
                if fault not in seen:
                    print(fault, flush=True)
                seen.add(fault)
    print(f"{len(jobs)} files, {read_now} read now, {failed} with faults")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
