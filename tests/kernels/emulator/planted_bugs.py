#!/usr/bin/env python3
"""Plants a bug in a copy of each of some shipped kernels and demands that the checked kernel tests catch it.

Usage: planted_bugs.py BUILD [NAME...]
BUILD holds the test programs kernels_checked_test and gpu_kernels_checked_test. For each bug the changed file goes into a folder of its own,
which comes first on the include path; the one unit that it is in is compiled again, with the build's own command,
and linked in front of the others. The script fails if a text to be changed is not there any more, if a unit
does not compile, or if the test passes or fails for another reason than the one named here.
"""
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PROGRAMS = "tests/kernels/emulator/checks/"
COPIES_LATE = "copies=late"


@dataclasses.dataclass
class Bug:
    name: str
    unit: str  # the source that is compiled, in kernels/cuda
    file: str  # where the bug goes, in kernels/cuda; a header of the unit or the unit itself
    right: str
    wrong: str
    program: str
    tests: str  # which of its test cases run
    caught_by: str  # pattern of the report; spaces do not count
    options: str = ""  # of the machine


BUGS = [
    Bug(
        name="a barrier removed",
        unit="cross_entropy.cu",
        file="block_reduce.h",
        right="  if (lane == 0) slots.of_warp[warp] = value;\n  __syncthreads();\n",
        wrong="  if (lane == 0) slots.of_warp[warp] = value;\n",
        program="kernels_checked_test",
        tests="softmax_cross_entropy: backends agree*",
        caught_by=r"(race|uninitialised): .* \(block_reduce\.h:\d+",
    ),
    Bug(
        name="an index off by one",
        unit="cross_entropy.cu",
        file="cross_entropy.cu",
        right="    losses[row] = ",
        wrong="    losses[row + 1] = ",
        program="kernels_checked_test",
        tests="softmax_cross_entropy: backends agree*",
        caught_by=r"out of bounds: write of 8 bytes, .* \(cross_entropy\.cu:\d+",
    ),
    Bug(
        name="a wrong mask",
        unit="cross_entropy.cu",
        file="block_reduce.h",
        right="kWholeWarp = 0xffffffffu",
        wrong="kWholeWarp = 0x7fffffffu",
        program="kernels_checked_test",
        tests="softmax_cross_entropy: backends agree*",
        caught_by=r"__shfl_down_sync at block_reduce\.h:\d+: mask 0x7fffffff lacks the calling lane 31",
    ),
    Bug(
        name="a wait for copies too early",
        unit="mma_forward.cu",
        file="mma_gemm.h",
        right="ptx::cp_async_wait<kAhead - 1>()",
        wrong="ptx::cp_async_wait<kAhead>()",
        program="gpu_kernels_checked_test",
        tests="tensor cores convolve integers*",
        caught_by=r"uninitialised: read of 16 bytes, shared memory at byte \d+ \(.*mma_",
        options=COPIES_LATE,
    ),
    Bug(
        name="an accumulator left uninitialised",
        unit="simt_linear.cu",
        file="simt_linear.cu",
        right="    typename SimtTile<kSize>::Sums sums = {};\n",
        wrong="    typename SimtTile<kSize>::Sums sums;\n",
        program="kernels_checked_test",
        tests="linear: sums of integers*",
        caught_by=r"CHECK\(difference\(.*expected",
    ),
    Bug(
        name="memory of a wrong device",
        unit="context.cpp",
        file="context.cpp",
        right="void* take(int ordinal, std::size_t bytes) {\n  check(cudaSetDevice(ordinal));\n",
        wrong="void* take(int ordinal, std::size_t bytes) {\n  check(cudaSetDevice(ordinal + 1));\n",
        program="kernels_checked_test",
        tests="linear: sums of integers*",
        caught_by=r"a pointer to emu:1, whose memory emu:0 has no access to",
    ),
]


def commands(build):
    """Compile and link commands of the build, by output."""
    ninja = os.environ.get("NINJA", "ninja")
    text = subprocess.run([ninja, "-C", build, "-t", "compdb"], check=True, capture_output=True, text=True).stdout
    return {entry["output"]: entry["command"] for entry in json.loads(text)}


def hooked(build_commands, unit):
    """Output of the command that compiles `unit` for the checks: kernels with hooks, other files as they are."""
    if unit.endswith(".cu"):
        pattern = r"libconvoy_hooked_kernels\.a\.p/.*emulated_" + re.escape(unit.replace(".", "_")) + r"\.cpp\.o$"
    else:
        pattern = r"libconvoy_emulator\.a\.p/.*cuda_" + re.escape(unit) + r"\.o$"
    found = [output for output in build_commands if re.search(pattern, output)]
    if len(found) != 1:
        raise SystemExit(f"planted_bugs: {unit}: {len(found)} units of that name in the build, expected 1")
    return found[0]


def with_output(command, output, target):
    """`command` with all mentions of `output` (the object, its depfile) replaced."""
    words = [word.replace(output, target) for word in shlex.split(command)]
    return [word for word in words if word]


def plant(bug, folder):
    """Writes the changed copy; returns the include folder that shadows the tree."""
    with open(os.path.join(ROOT, "kernels/cuda", bug.file)) as source:
        text = source.read()
    if bug.right not in text:
        raise SystemExit(f"planted_bugs: {bug.name}: kernels/cuda/{bug.file} no longer holds {bug.right!r}")
    path = os.path.join(folder, "kernels/cuda", bug.file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as copy:
        copy.write(text.replace(bug.right, bug.wrong))
    return path


def compile_copy(bug, build, build_commands, folder):
    copy = plant(bug, folder)
    output = hooked(build_commands, bug.unit)
    target = os.path.join(folder, "unit.o")
    command = with_output(build_commands[output], output, target)
    if bug.unit == bug.file and not bug.unit.endswith(".cu"):
        command[-1] = copy
    compiler = next(i for i, word in enumerate(command) if word.startswith("-"))
    command.insert(compiler, "-I" + folder)
    subprocess.run(command, cwd=build, check=True)
    return target


def link_copy(bug, build, build_commands, unit):
    """Beside the program itself, whose place its libraries' paths start from."""
    target = PROGRAMS + "planted_" + re.sub(r"\W+", "_", bug.name)
    program = PROGRAMS + bug.program
    command = with_output(build_commands[program], program, target)
    # The linker keeps the first of several definitions.
    at = command.index(target) + 1
    command[at:at] = [unit, "-Wl,--allow-multiple-definition"]
    subprocess.run(command, cwd=build, check=True)
    return os.path.join(build, target)


def run_copy(bug, program):
    environment = dict(os.environ, CONVOY_EMULATOR=bug.options)
    return subprocess.run([program, bug.tests], env=environment, capture_output=True, text=True, timeout=300)


def report(bug, build, build_commands):
    """Empty if the bug is caught as expected, else what happened."""
    folder = os.path.join(build, "planted", re.sub(r"\W+", "_", bug.name))
    unit = compile_copy(bug, build, build_commands, folder)
    result = run_copy(bug, link_copy(bug, build, build_commands, unit))
    # Catch2 breaks long lines, inside of words too.
    text = re.sub(r"\s", "", result.stdout + result.stderr)
    if result.returncode == 0:
        return "the tests pass"
    if not re.search(bug.caught_by.replace(" ", ""), text):
        return f"caught by something else than {bug.caught_by!r}:\n{result.stdout[-3000:]}{result.stderr[-1000:]}"
    return ""


def main():
    build = os.path.realpath(sys.argv[1])
    wanted = sys.argv[2:]
    unknown = set(wanted) - {bug.name for bug in BUGS}
    if unknown:
        raise SystemExit(f"planted_bugs: unknown {sorted(unknown)}; known: {[bug.name for bug in BUGS]}")
    build_commands = commands(build)
    missed = 0
    for bug in BUGS:
        if wanted and bug.name not in wanted:
            continue
        problem = report(bug, build, build_commands)
        print(f"{bug.name} ({bug.file}): {problem or 'caught'}", flush=True)
        missed += bool(problem)
    if missed:
        raise SystemExit(f"planted_bugs: {missed} not caught")


if __name__ == "__main__":
    main()
