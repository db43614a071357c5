#!/usr/bin/env python3
"""Counts instructions of a few small fixed runs of `convoy` under callgrind and compares them with a kept baseline.

Usage: instructions.py BUILD [RUN...]          compare; the exit code is 1 where a count has grown beyond its tolerance
       instructions.py BUILD --write [RUN...]  count, and keep the counts as the new baseline
Times differ from machine to machine and from run to run, counts hardly do. Valgrind knows AVX2 but not AVX-512, and shows
programs the same caches everywhere: all runs take AVX2, one thread a worker and an environment of their own.
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BASELINE = os.path.join(ROOT, "bench", "baseline", "instructions.json")
PICTURE = os.path.join(ROOT, "bench", "baseline", "picture.jpg")
PICTURES = 12

# `all` counts everything, `own` what stands in the program's own file: no library, nothing made at run time.
PARTS = ("all", "own")
# Of a run that has none of its own in the baseline. Short runs have more: a build with CUDA starts up in 460,000 more.
TOLERANCE = 0.03
# Another compiler or library gives other counts for no fault of ours.
LOOSE_TOLERANCE = 0.25
BETTER = 0.97  # below this share of the baseline the baseline is worth renewing

TRAIN = ["train", "--seed", "1", "--threads", "1", "--loader-threads", "1", "--image-size", "32"]
RUNS = {
    "help": ["--help"],
    "plan": ["plan", "--model", "resnet50", "--cluster", os.path.join(ROOT, "examples", "cluster-4096.toml")],
    "data": ["bench", "data", "--data", "folder:{pictures}", "--image-size", "224", "--batch", "4", "--seed", "1",
             "--loader-threads", "1", "--repeats", "1"],
    "train": [*TRAIN, "--model", "resnet18", "--data", "synthetic:8", "--batch", "4", "--steps", "2"],
    "pipeline": [*TRAIN, "--model", "toy", "--data", "synthetic:16", "--batch", "8", "--steps", "2",
                 "--devices", "cpu:0,cpu:1", "--stages", "2", "--micro-batches", "2"],
}
ENVIRONMENT = {
    "CONVOY_CPU_ISA": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",  # also: the program need not start itself anew with a setting of its own
    "LANG": "C",
    "PATH": os.defpath,
}


def make_pictures(folder):
    """A folder of images as `--data folder:` takes it, two classes, all of the same picture."""
    for part in ("train", "val"):
        for number in range(PICTURES):
            target = os.path.join(folder, part, "ab"[number % 2])
            os.makedirs(target, exist_ok=True)
            shutil.copy(PICTURE, os.path.join(target, f"{number}.jpg"))


def self_counts(text):
    """Instructions of each object file (program, libraries, "???" for code made at run time) in callgrind's output."""
    names, counts, current, is_call = {}, {}, "???", False
    for line in text.splitlines():
        if line.startswith("ob="):
            number, name = re.match(r"ob=\((\d+)\) ?(.*)", line).groups()
            current = names.setdefault(number, name)
        elif line.startswith("cob="):
            number, name = re.match(r"cob=\((\d+)\) ?(.*)", line).groups()
            names.setdefault(number, name)
        elif line.startswith("calls="):
            is_call = True  # the next line holds what the callee took, which counts there
        elif re.match(r"[0-9+*-]", line):
            if not is_call:
                counts[current] = counts.get(current, 0) + int(line.split()[1])
            is_call = False
    return counts


def parts_of(counts, program):
    own = sum(count for name, count in counts.items() if os.path.basename(name) == os.path.basename(program))
    return {"all": sum(counts.values()), "own": own}


def count(program, arguments, folder):
    """The parts of one run."""
    out = os.path.join(folder, "callgrind.out")
    words = [word.replace("{pictures}", os.path.join(folder, "pictures")) for word in arguments]
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, *words]
    done = subprocess.run(command, env={**ENVIRONMENT, "HOME": folder}, cwd=folder, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    with open(out, encoding="utf-8", errors="replace") as file:
        return parts_of(self_counts(file.read()), program)


def count_all(program, names):
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(os.path.join(folder, "pictures"))
        return {name: count(program, RUNS[name], folder) for name in names}


def versions(build, program):
    """What counts depend on beside the source."""
    with open(os.path.join(build, "meson-info", "intro-compilers.json"), encoding="utf-8") as file:
        compiler = json.load(file)["host"]["cpp"]
    text = subprocess.run([program, "devices"], env={**os.environ, "CONVOY_CPU_ISA": "avx2"}, text=True, check=True,
                          stdout=subprocess.PIPE).stdout

    def found(pattern):
        match = re.search(pattern, text, re.M)
        return match.group(1).strip() if match else "none"

    valgrind = subprocess.run(["valgrind", "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout
    return {
        "compiler": f"{compiler['id']} {compiler['version']}",
        "onednn": found(r"oneDNN ([0-9.]+)"),
        "decoders": found(r"^decoders +(.*)"),
        "libc": platform.libc_ver()[1],
        "valgrind": valgrind.strip().removeprefix("valgrind-"),
    }


def differences(kept, here):
    return [f"{key} is {here[key]}, the baseline's is {kept.get(key)}" for key in here if kept.get(key) != here[key]]


def compare(baseline, counts, loose=False):
    """Lines of a table; names of what has grown too much, and of what has become clearly less."""
    lines = [f"{'run':<10} {'part':<4} {'baseline':>15} {'now':>15}  ratio"]
    grown, better = [], []
    for name, parts in counts.items():
        kept = baseline["runs"].get(name)
        if kept is None:
            grown.append(f"{name} has no baseline")
            continue
        tolerance = max(kept.get("tolerance", TOLERANCE), LOOSE_TOLERANCE if loose else 0)
        for part in PARTS:
            ratio = parts[part] / kept[part]
            lines.append(f"{name:<10} {part:<4} {kept[part]:>15,} {parts[part]:>15,}  {ratio:.4f}")
            if ratio > 1 + tolerance:
                grown.append(f"{name} ({part}) by {100 * (ratio - 1):.1f} %, allowed are {100 * tolerance:.0f} %")
            elif ratio < BETTER:
                better.append(f"{name} ({part}) by {100 * (1 - ratio):.1f} %")
    return lines, grown, better


def write(path, kept, counts, here):
    """The new baseline; runs that were not counted stay, but never with other versions than theirs."""
    runs = dict(kept["runs"]) if kept and kept["versions"] == here else {}
    for name, parts in counts.items():
        tolerance = (kept["runs"].get(name, {}) if kept else {}).get("tolerance", TOLERANCE)
        runs[name] = {**parts, "tolerance": tolerance}
    if set(runs) != set(RUNS):
        raise SystemExit(f"{os.path.basename(path)}: versions differ from the kept ones: count all runs anew")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"versions": here, "runs": {name: runs[name] for name in RUNS}}, file, indent=2)
        file.write("\n")


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def report(baseline, counts, here):
    """Prints the comparison; the exit code."""
    other = differences(baseline["versions"], here)
    for text in other:
        print(f"other versions: {text}")
    if other:
        print(f"so up to {100 * LOOSE_TOLERANCE:.0f} % more are allowed: what is less than that shows nothing")
    lines, grown, better = compare(baseline, counts, bool(other))
    print("\n".join(lines))
    renew = "scripts/instructions.py build --write keeps the new counts"
    if better:
        print(f"fewer instructions: {'; '.join(better)}. {renew}")
    if grown:
        print(f"more instructions: {'; '.join(grown)}. Where that is meant, {renew}")
    return 1 if grown else 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=" ".join(RUNS))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.runs if name not in RUNS]
    if unknown:
        parser.error(f"unknown run {unknown[0]}; known: {' '.join(RUNS)}")
    baseline = load(BASELINE)
    if baseline is None and not options.write:
        raise SystemExit(f"{BASELINE}: not there; --write makes it")
    program = os.path.abspath(os.path.join(options.build, "convoy"))
    here = versions(options.build, program)
    counts = count_all(program, options.runs or RUNS)
    failed = report(baseline, counts, here) if baseline else 0
    if not options.write:
        return failed
    write(BASELINE, baseline, counts, here)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
