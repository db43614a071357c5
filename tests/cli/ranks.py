"""Training on several ranks under mpirun or convoy launch, for tests that make one of them misbehave."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from process_test import png

LIMIT = 50  # seconds, of each run
LAUNCHERS = ("mpirun", "launch")
HOST = socket.gethostname()
TOY = ["--model", "toy", "--data", "synthetic:800", "--batch", "8", "--lr", "0.01", "--comm-timeout", "20"]
SLOW_STEPS = ["--model", "resnet18", "--bn", "frozen", "--image-size", "32", "--batch", "8", "--lr", "0.001"]
TOKEN = "CONVOY_TESTED_JOB"  # a variable that all processes of a job inherit

PROGRAM = ""
TROUBLE = ""  # the library of trouble.cpp


def main():
    """Runs the tests of the script: arguments are PROGRAM, TROUBLE and names of tests."""
    global PROGRAM, TROUBLE
    PROGRAM, TROUBLE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    os.environ["PATH"] = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
    unittest.main(module="__main__", verbosity=2)


# After a failed rank Open MPI 4.1.4's mpirun now and then crashes in its last function, all being said and done.
MPIRUN_CRASH = re.compile(
    r"\[\S+:\d+\] \*\*\* Process received signal \*\*\*\n(?:\[.*\n)*?.*PMIx_server_finalize(?:.*\n)*?.*End of error message \*\*\*\n"
)


def environment(**more):
    """Ours without what launchers and Convoy's own variables would say."""
    foreign = ("CONVOY_", "OMPI_", "PMI", "SLURM_", "TROUBLE_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    # MALLOC_PERTURB_: mpirun of Open MPI 4.1.4 reads memory that it has freed when a rank fails.
    for name in ("RANK", "WORLD_SIZE", "LD_PRELOAD", "MALLOC_PERTURB_"):
        kept.pop(name, None)
    kept.update(OMP_WAIT_POLICY="passive", **more)
    return kept


def trouble(rank, **what):
    """Variables with which a rank misbehaves, see trouble.cpp."""
    variables = {"TROUBLE_" + name.upper(): str(value) for name, value in what.items()}
    # A sanitizer's library need not be the first one.
    return {"LD_PRELOAD": TROUBLE, "TROUBLE_RANK": str(rank), "ASAN_OPTIONS": "verify_asan_link_order=0", **variables}


def variables_of(pid):
    """The variables of a process; none if it has ended."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return dict(part.split("=", 1) for part in file.read().split("\0") if "=" in part)
    except OSError:
        return {}


class Job:
    """A command on ranks, started with Popen; stdout and stderr go to files."""

    def __init__(self, command, folder, variables):
        self.token = uuid.uuid4().hex
        self.paths = [os.path.join(folder, f"{self.token}.{name}") for name in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**variables, TOKEN: self.token}, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        self.log = os.path.join(folder, "log")

    def text(self, which):
        with open(self.paths[which], encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def out(self):
        return self.text(0)

    @property
    def err(self):
        return MPIRUN_CRASH.sub("", self.text(1))

    def mpirun_crashed(self):
        return MPIRUN_CRASH.search(self.text(1)) is not None

    @property
    def error_lines(self):
        """The program's error lines, in order."""
        return [line for line in self.err.splitlines() if line.startswith("convoy: error: ")]

    def processes(self):
        """All that belong to the job and have not ended: process number and variables."""
        every = ((int(name), variables_of(name)) for name in os.listdir("/proc") if name.isdigit())
        return {pid: variables for pid, variables in every if variables.get(TOKEN) == self.token}

    def ranks(self):
        """Process numbers of the ranks that run the program, by rank."""
        found = {}
        for pid, variables in self.processes().items():
            try:
                program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                continue
            if "OMPI_COMM_WORLD_RANK" in variables and program == os.path.basename(PROGRAM):
                found[int(variables["OMPI_COMM_WORLD_RANK"])] = pid
        return found

    def wait(self):
        """The exit code."""
        try:
            return self.process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {LIMIT} s: {self.err}") from None

    def end(self):
        """Ends all that is left, so that a failed test leaves nothing."""
        for pid in [self.process.pid, *self.processes()]:
            if pid == self.process.pid and self.process.poll() is not None:
                continue
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


class RanksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def command(self, launcher, ranks):
        if launcher == "mpirun":
            return ["mpirun", "-q", "--bind-to", "none", "--oversubscribe", "-n", str(ranks)]
        return [PROGRAM, "launch", "-n", str(ranks), *launcher.split()[1:], "--"]

    def start(self, launcher, ranks, *words, **variables):
        """Starts `convoy train WORDS --log log`; launcher: mpirun, launch, or launch with flags."""
        by_hand = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if launcher == "mpirun" else {}
        train = [PROGRAM, "train", *words, "--log", "log"]
        return self.begin([*self.command(launcher, ranks), *train], **by_hand, **variables)

    def begin(self, command, **variables):
        job = Job(command, self.folder, environment(**variables))
        self.addCleanup(job.end)
        return job

    def assert_ends(self, job, *codes):
        """The job ends with one of these codes; nothing is known of it where mpirun itself crashed."""
        code = job.wait()
        if not job.mpirun_crashed():
            self.assertIn(code, codes, job.err)

    def good(self, *arguments, **variables):
        job = self.start(*arguments, **variables)
        self.assertEqual(job.wait(), 0, job.err)
        return job

    def until(self, condition, what, job=None, limit=LIMIT):
        """Waits until `condition()` is true, and returns that."""
        end = time.monotonic() + limit
        while not (value := condition()):
            self.assertLess(time.monotonic(), end, f"{what} did not come: {job.err if job else ''}")
            if job:
                self.assertIsNone(job.process.poll(), f"the job ended before {what}: {job.err}")
            time.sleep(0.005)
        return value

    def make_images(self, train, val=1):
        """A folder of two classes with so many images each."""
        for split, count in (("train", train), ("val", val)):
            for kind in ("a", "b"):
                os.makedirs(self.path("images", split, kind))
                for i in range(count):
                    png(self.path("images", split, kind, f"{split}-{i}.png"), 32, lambda x, y, i=i: (x, y, 5 * i))

    def lines(self, *types):
        """The lines of these types in the log."""
        try:
            with open(self.path("log"), encoding="utf-8") as file:
                found = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [line for line in found if line["type"] in types]

    def last_step(self):
        """Of the log's last whole line, 0 without any step."""
        try:
            with open(self.path("log"), "rb") as file:
                steps = re.findall(rb'"type":"step","step":(\d+),', file.read())
        except FileNotFoundError:
            return 0
        return int(steps[-1]) if steps else 0

    def reach(self, job, step):
        """Waits for that step; the ranks' process numbers."""
        self.until(lambda: self.last_step() >= step, f"step {step}", job)
        return job.ranks()

    def assert_gone(self, job, since, seconds):
        """Nothing is left of the job `seconds` after `since`."""
        while job.processes() and time.monotonic() < since + seconds:
            time.sleep(0.05)
        left = job.processes()
        self.assertFalse(left, f"{list(left)} are left after {seconds} s")

    def hash_of_end(self):
        return self.lines("end")[-1]["weights_hash"]

    def saved_step(self, folder="run"):
        """Of the newest checkpoint, 0 without any."""
        names = os.listdir(self.path(folder)) if os.path.isdir(self.path(folder)) else []
        return max((int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name)), default=0)

    def assert_resumes(self, *words):
        """One process goes on from the newest checkpoint for a step."""
        step = self.saved_step()
        self.assertGreater(step, 0, "no checkpoint")
        run = subprocess.run(
            [PROGRAM, "train", *words, "--checkpoint", "run", "--resume", "--steps", str(step + 1)],
            cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"trained to step {step + 1} ", run.stdout)
