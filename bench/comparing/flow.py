"""From the command line to measured rows: checks programs, makes what rows need, lets groups run one after another."""
import dataclasses
import os
import subprocess
import tempfile

from . import machine, rows
from .measure import compared, take_turns
from .processes import CompareError, last_lines
from .sides import PEERS

STEP_GB = 3  # of memory that one variant of PyTorch's step keeps
BUSY = 0.5  # cores in use by others, from which on it is said


def chosen(text, known, flag):
    names = list(dict.fromkeys(name for name in text.split(",") if name))
    for name in names or [text]:
        if name not in known:
            raise CompareError(f"{flag}: '{name}' is unknown, expected some of {','.join(known)}")
    return names


def make_options(args, names):
    python = machine.find_program(args.python, "--python")
    mpi = {"ddp", "allreduce"} & set(names)
    return rows.Options(
        convoy=machine.find_program(args.convoy, "--convoy"), python=python,
        python_vision=machine.find_program(args.python_vision or python, "--python-vision"),
        mpirun=machine.find_program(args.mpirun, "--mpirun") if mpi else args.mpirun,
        variants=tuple(chosen(args.variants, rows.VARIANTS, "--variants")),
        work=rows.SMALL if args.small else rows.FULL, limit=args.limit, repeats=args.repeats,
        data=os.path.abspath(args.data) if args.data else "", allreduce="")


def versions(options, names):
    """Of the programs that these rows run."""
    found = {}
    if set(names) - {"data"}:
        found["torch"] = machine.versions_of(options.python, ["torch"], "--python")["torch"]
    if "data" in names:
        modules = ["torch", "torchvision", "PIL", "numpy"]
        found["torchvision"] = machine.versions_of(options.python_vision, modules, "--python-vision")["torchvision"]
    if {"ddp", "allreduce"} & set(names):
        found["mpi"] = machine.first_line([options.mpirun, "--version"])
    return found


def must(command, limit):
    """Runs what has to succeed before a row can be measured."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=machine.environment(),
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompareError(f"cannot run {command[0]}: {error}") from error
    if done.returncode != 0:
        raise CompareError(f"ended with {done.returncode}: {' '.join(command)}{last_lines(done.stderr)}")


def prepared(options, name, mpicxx, folder, say):
    """The options with what this row needs: pictures, the MPI library's program."""
    if name == "data" and not options.data:
        say("data: makes JPEG files")
        jpegs = os.path.join(folder, "jpegs")
        must([options.python_vision, os.path.join(PEERS, "make_jpegs.py"), jpegs, "--images",
              str(options.work.jpegs)], options.limit)
        return dataclasses.replace(options, data=jpegs)
    if name == "allreduce":
        program = os.path.join(folder, "allreduce")
        compiler = machine.find_program(mpicxx, "--mpicxx")
        must([compiler, "-O2", "-o", program, os.path.join(PEERS, "allreduce.cpp")], options.limit)
        return dataclasses.replace(options, allreduce=program)
    return options


def check_memory(options, name):
    if not name.startswith(("step", "memory")) or options.work is rows.SMALL:
        return
    needed, free = STEP_GB * len(options.variants) + 2, machine.free_memory_gb()
    if free < needed:
        raise CompareError(f"keeps {len(options.variants)} programs in memory: expected {needed} GB, {free:.1f} are "
                           "free; --variants takes fewer")


def short(text, options):
    """A command as others would write it."""
    for path, name in ((options.allreduce, "./allreduce"), (options.data, "JPEGS"), (options.convoy, "convoy"),
                       (options.mpirun, "mpirun")):
        text = text.replace(path, name) if path else text
    return text


def lines_of(comparison, options, args, about, say):
    """One group, measured: a line of JSON for each of its rows."""
    found = take_turns(comparison, args.runs, say)
    besides = {"turns": args.runs, "settings": comparison.settings, "date": machine.today(),
               **about,
               "commands": [short(side.text(), options) for side in comparison.sides]}
    return [compared(row, found) | besides for row in comparison.rows]


def groups_of(names):
    """Memory is read from the runs of step-1: these two are one group."""
    merged = ["step-1" if name == "memory" else name for name in names]
    return list(dict.fromkeys(merged))


def wanted(line, names):
    return line["row"] in names or line["row"] not in rows.GROUPS


def run_rows(args, names, keep, fail, say):
    """Gives each measured line to `keep` as soon as it is there, and what went wrong to `fail`."""
    options = make_options(args, names)
    about = {"commit": machine.commit(), "machine": machine.facts(options.convoy),
             "versions": versions(options, names)}
    if os.getloadavg()[0] > BUSY:
        say(f"other programs kept {os.getloadavg()[0]:.1f} cores busy in the last minute: expect noise")
    with tempfile.TemporaryDirectory(prefix="convoy-compare-") as folder:
        for name in groups_of(names):
            try:
                check_memory(options, name)
                ready = prepared(options, name, args.mpicxx, folder, say)
                for line in lines_of(rows.GROUPS[name](ready), ready, args, about, say):
                    if wanted(line, names):
                        keep(line)
            except CompareError as error:
                fail(name, str(error))
