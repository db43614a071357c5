#!/usr/bin/env python3
"""`convoy launch` over mpirun: exit codes, last lines, signals, restarts, and that nothing is left running. The
ranks are small shell scripts here.

Usage: launch_test.py PROGRAM [names of tests]
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
LIMIT = 50  # seconds, of each run
RANK = "$OMPI_COMM_WORLD_RANK"


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CONVOY_", "OMPI_", "PMIX_", "SLURM_"))}
    kept.pop("MALLOC_PERTURB_", None)  # mpirun of Open MPI 4.1.4 reads freed memory when a rank fails
    kept.update(more)
    return kept


def only(rank, what, others="sleep 30"):
    """A script that does `what` on one rank."""
    return f'if [ {RANK} = {rank} ]; then {what}; else {others}; fi'


def complain(kind, text):
    return f'echo "convoy: error: [rank {RANK}] {kind}: {text}" >&2'


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def script(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def launch(self, *words, **more):
        more.setdefault("env", environment())
        run = subprocess.run([PROGRAM, "launch", *words], cwd=self.folder, capture_output=True, timeout=LIMIT,
                             check=False, text=True, **more)
        self.errors = run.stderr.splitlines()
        return run

    def start(self, *words):
        run = subprocess.Popen([PROGRAM, "launch", *words], cwd=self.folder, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(lambda: run.poll() is None and run.kill())
        return run

    def wait_for(self, name, count=1):
        """Until `count` ranks have written a file NAME.RANK."""
        end = time.monotonic() + LIMIT
        while sum(entry.startswith(name + ".") for entry in os.listdir(self.folder)) < count:
            self.assertLess(time.monotonic(), end, "the ranks did not come")
            time.sleep(0.02)

    def assert_gone(self, name):
        """No process whose number is in a file NAME.* is left."""
        for entry in os.listdir(self.folder):
            if entry.startswith(name + "."):
                with open(self.path(entry), encoding="utf-8") as file:
                    self.assertFalse(os.path.exists(f"/proc/{int(file.read())}"), entry)

    def test_output_is_passed_on_untouched(self):
        run = self.launch("-n", "3", "--", "sh", "-c", f'echo \'{{"rank":"\'{RANK}\'"}}\'; echo e{RANK} >&2')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), ['{"rank":"0"}', '{"rank":"1"}', '{"rank":"2"}'])
        self.assertEqual(sorted(self.errors), ["e0", "e1", "e2"])

    def test_the_first_failure_decides_code_and_last_line(self):
        what = complain("data", "x.png: damaged") + "; sleep 0.3; exit 3"
        others = "sleep 0.1; " + complain("communication", "an echo") + "; sleep 0.3; echo last >&2; exit 5"
        run = self.launch("-n", "3", "--", "sh", "-c", only(1, what, others))
        self.assertEqual(run.returncode, 3)
        self.assertEqual(self.errors[-1], "convoy: error: [rank 1] data: x.png: damaged")

    def test_a_failure_that_stands_last_is_said_once(self):
        run = self.launch("-n", "2", "--", "sh", "-c", only(1, complain("usage", "no") + "; exit 2"))
        self.assertEqual(run.returncode, 2)
        self.assertEqual(self.errors, ["convoy: error: [rank 1] usage: no"])

    def test_a_rank_killed_by_a_signal_is_5(self):
        for name, number in (("KILL", 9), ("SEGV", 11)):
            run = self.launch("-n", "2", "--", "sh", "-c", only(1, f"kill -{name} $$"))
            self.assertEqual(run.returncode, 5)
            self.assertEqual(self.errors, [f"convoy: error: communication: a rank was killed by signal {number} "
                                           f"(SIG{name})"])

    def test_a_code_of_another_program_is_kept(self):
        for code in (9, 255):
            run = self.launch("-n", "2", "--", "sh", "-c", only(1, f"exit {code}"))
            self.assertEqual(run.returncode, code)
            self.assertIn(f"the first rank to fail ended with code {code}", self.errors[-1])

    def test_sigterm_and_sigusr1_reach_the_ranks_as_a_wish_to_save(self):
        save = f"trap 'sleep 2; echo saved >saved.{RANK}; exit 143' USR1; echo $$ >pid.{RANK}; while :; do sleep 0.1; done"
        for number in (signal.SIGTERM, signal.SIGUSR1):
            run = self.start("-n", "2", "--", "sh", "-c", save)
            self.wait_for("pid", 2)
            run.send_signal(number)
            time.sleep(0.5)
            run.send_signal(number)  # a second one does no harm
            out, err = run.communicate(timeout=LIMIT)
            self.assertEqual(run.returncode, 143, err)
            self.wait_for("saved", 2)
            self.assert_gone("pid")
            for entry in os.listdir(self.folder):
                os.remove(self.path(entry))

    def test_a_wish_to_save_that_comes_too_early_still_ends_the_run(self):
        run = self.start("-n", "2", "--", "sh", "-c", "sleep 30")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=LIMIT)
        self.assertIn(run.returncode, (143, -signal.SIGTERM))

    def test_ctrl_c_ends_all_at_once(self):
        run = self.start("-n", "2", "--", "sh", "-c", f"echo $$ >pid.{RANK}; exec sleep 30")
        self.wait_for("pid", 2)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 130, err)
        self.assert_gone("pid")

    def test_nothing_is_left_running(self):
        stay = ("(setsid sh -c 'echo $$ >pid.a" + RANK + "; exec sleep 60' >/dev/null 2>&1 </dev/null &); "
                "(sh -c 'trap \"\" TERM; echo $$ >pid.b" + RANK + "; sleep 60; sleep 60' >/dev/null 2>&1 </dev/null &); "
                f"while [ ! -s pid.a{RANK} ] || [ ! -s pid.b{RANK} ]; do sleep 0.05; done; exit 4")
        run = self.launch("-n", "2", "--", "sh", "-c", stay)
        self.assertEqual(run.returncode, 4)
        self.assert_gone("pid")

    def test_nothing_outlives_a_killed_launcher(self):
        run = self.start("-n", "2", "--", "sh", "-c", f"echo $$ >pid.{RANK}; exec sleep 60")
        self.wait_for("pid", 2)
        run.kill()
        run.communicate(timeout=LIMIT)
        end = time.monotonic() + 15
        while time.monotonic() < end:
            try:
                return self.assert_gone("pid")
            except AssertionError:
                time.sleep(0.1)
        self.assert_gone("pid")

    def train(self, text):
        """A script that stands for convoy train: it appends its words to the file `tries`."""
        return self.script("convoy", f'[ {RANK} = 0 ] && echo "$@" >>tries; n=$(wc -l <tries); ' + text)

    def tries(self):
        with open(self.path("tries"), encoding="utf-8") as file:
            return file.read().splitlines()

    def test_restarts_go_on_from_the_checkpoint(self):
        program = self.train("sleep 0.2; n=$(wc -l <tries); " + f'if [ $n -lt 3 ] && [ {RANK} = 1 ]; then kill -9 $$; fi; '
                             "sleep 0.3; exit 0")
        run = self.launch("-n", "2", "--restarts", "3", "--", program, "train", "--checkpoint", "run")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.tries(), ["train --checkpoint run"] + ["train --checkpoint run --resume=auto"] * 2)
        cause = "from step 0, after communication: a rank was killed by signal 9 (SIGKILL)"
        self.assertEqual(self.errors, [f"convoy: launch: try 2 of 4, {cause}", f"convoy: launch: try 3 of 4, {cause}"])

    def test_restarts_end(self):
        program = self.train(only(0, complain("communication", "dead") + "; exit 5"))
        run = self.launch("-n", "2", "--restarts", "1", "--", program, "train", "--checkpoint", "run")
        self.assertEqual(run.returncode, 5)
        self.assertEqual(len(self.tries()), 2)
        self.assertEqual(self.errors[-1], "convoy: error: [rank 0] communication: dead")

    def test_other_failures_would_only_come_again(self):
        program = self.train(only(0, complain("numerics", "nan") + "; exit 6"))
        run = self.launch("-n", "2", "--restarts", "2", "--", program, "train", "--checkpoint", "run")
        self.assertEqual(run.returncode, 6)
        self.assertEqual(len(self.tries()), 1)

    def test_a_rank_that_a_user_has_stopped_ends_the_run(self):
        others = "sleep 0.2; " + complain("communication", "dead: exited") + "; exit 5"
        program = self.train(only(1, "sleep 0.1; exit $CODE", others))
        for code in (130, 143):
            if os.path.exists(self.path("tries")):
                os.remove(self.path("tries"))
            run = self.launch("-n", "2", "--restarts", "2", "--", program, "train", "--checkpoint", "run",
                              env=environment(CODE=str(code)))
            self.assertEqual(run.returncode, code, run.stderr)
            self.assertEqual(len(self.tries()), 1)

    def refused(self, *words, **more):
        run = self.launch(*words, **more)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(len(self.errors), 1)
        return self.errors[0]

    def test_what_cannot_be_started_is_refused(self):
        self.assertIn("-n N is missing", self.refused("--", "sh"))
        self.assertIn("no command is given", self.refused("-n", "2"))
        self.assertIn('"nosuchprogram" is no program', self.refused("-n", "2", "--", "nosuchprogram"))
        self.assertIn("--hosts nosuchfile: No such file", self.refused("-n", "2", "--hosts", "nosuchfile", "--", "sh"))
        self.assertIn("--hosts .: Is a directory", self.refused("-n", "2", "--hosts", ".", "--dry-run", "--", "sh"))
        self.assertIn("no host is named there", self.refused("-n", "2", "--hosts", "/dev/null", "--", "sh"))
        self.assertIn("--iface nosuch0: no interface", self.refused("-n", "2", "--iface", "nosuch0", "--", "sh"))
        self.assertIn("--restarts 1: only convoy train with --checkpoint",
                      self.refused("-n", "2", "--restarts", "1", "--", "sh", "train"))
        self.assertIn("openmpi-bin", self.refused("-n", "2", "--", "/bin/sh", env=environment(PATH="/nonexistent")))
        self.script("mpirun", "echo HYDRA build details:")
        self.assertIn('says "HYDRA build details:", expected Open MPI',
                      self.refused("-n", "2", "--", "sh", env=environment(PATH=self.folder + ":" + os.environ["PATH"])))

    def test_dry_run_prints_the_command(self):
        with open(self.path("hosts"), "w", encoding="utf-8") as file:
            file.write("n1 slots=2\nn2 slots=2\n")
        run = self.launch("-n", "4", "--hosts", "hosts", "--iface", "lo", "--dry-run", "--", "convoy", "train", "--model", "a b",
                          env=environment(CONVOY_SEED="3"))
        self.assertEqual(run.returncode, 0, run.stderr)
        for part in ("mpirun -q -n 4 ", "--hostfile hosts", "-x CONVOY_SEED", "--mca btl_tcp_if_include lo", "--mca oob_tcp_if_include lo",
                     "-x CONVOY_IFACE=lo", "train --model 'a b'\n"):
            self.assertIn(part, run.stdout)
        self.assertNotIn("oversubscribe", run.stdout)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
