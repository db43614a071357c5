"""Programs that bench/compare runs: one that ends by itself, and a peer that stays and measures when it is asked.

Each gives lines of JSON. All that goes wrong is a CompareError, whose text has the last lines of the program's
stderr. Each runs in a session of its own, which is ended as a whole.
"""
import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
import time

LAST_LINES = 6  # of a failed program's stderr
LEAVE = 10  # seconds in which a program that was asked to end does so


class CompareError(Exception):
    """What the user reads."""


def as_text(command):
    return shlex.join(map(str, command))


def json_lines(text):
    """Those lines that are objects: mpirun and libraries may write others."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return found


def last_lines(text):
    return "".join("\n    " + line for line in text.rstrip().splitlines()[-LAST_LINES:])


def end_session(process):
    """Ends the program and all that it started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEAVE)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def on_cores(cores):
    """Programs started meanwhile run on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(command, env, cores=None, **streams):
    try:
        with on_cores(cores):
            return subprocess.Popen(list(map(str, command)), env=env, text=True, start_new_session=True, **streams)
    except OSError as error:
        raise CompareError(f"cannot run {command[0]}: {error.strerror}") from error


def run(command, env, limit, cores=None):
    """The lines of a program that ends by itself within `limit` seconds."""
    process = start(command, env, cores, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise CompareError(f"no end within {limit} s (--limit): {as_text(command)}") from error
    finally:
        end_session(process)
    if process.returncode != 0:
        raise CompareError(f"ended with {process.returncode}: {as_text(command)}{last_lines(err)}")
    return json_lines(out)


class Peer:
    """Ranks of a program that stays: each line on its stdin is a turn, which all take and the first one answers."""

    def __init__(self, command, environments, limit, cores=None):
        self.command, self.limit, self.cores = command, limit, cores
        self.environments = environments  # one for each rank
        self.ranks, self.errors, self.lines = [], [], queue.Queue()

    def __enter__(self):
        try:
            for rank, env in enumerate(self.environments):
                self.start_rank(env, subprocess.PIPE if rank == 0 else subprocess.DEVNULL)
            threading.Thread(target=self.read, daemon=True).start()
            self.until("ready")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, failure, *_):
        for rank in self.ranks:
            with contextlib.suppress(OSError):
                rank.stdin.close()
        for rank in self.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.wait(0 if failure else LEAVE)
        for rank in self.ranks:
            end_session(rank)

    def start_rank(self, env, stdout):
        self.errors.append(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
        self.ranks.append(start(self.command, env, self.cores, stdin=subprocess.PIPE, stdout=stdout,
                                stderr=self.errors[-1]))

    def read(self):
        for line in self.ranks[0].stdout:
            self.lines.put(line)
        self.lines.put(None)

    def until(self, mark):
        """The lines up to the one that has this key."""
        end, found = time.monotonic() + self.limit, []
        while True:
            for line in json_lines(self.next_text(end)):
                if mark in line:
                    return found
                found.append(line)

    def next_text(self, end):
        while True:
            with contextlib.suppress(queue.Empty):
                text = self.lines.get(timeout=0.2)
                if text is not None:
                    return text
                self.ranks[0].wait()
            self.check(end)

    def check(self, end):
        """Refuses a rank that has ended, and one that takes too long."""
        for process, errors in zip(self.ranks, self.errors):
            if process.poll() is not None:
                errors.seek(0)
                raise CompareError(f"ended with {process.returncode}: {as_text(self.command)}"
                                   f"{last_lines(errors.read())}")
        if time.monotonic() > end:
            raise CompareError(f"no answer within {self.limit} s (--limit): {as_text(self.command)}")

    def turn(self):
        for process in self.ranks:
            with contextlib.suppress(BrokenPipeError):  # its end is told by until()
                process.stdin.write("turn\n")
                process.stdin.flush()
        return self.until("done")
