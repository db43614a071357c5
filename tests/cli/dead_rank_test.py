#!/usr/bin/env python3
"""Ranks that die while they train: the others leave with the cause, and nothing is left running.

Usage: dead_rank_test.py PROGRAM TROUBLE [names of tests]
"""
import os
import signal
import time


from ranks import HOST, LAUNCHERS, TOY, RanksTest, main, trouble

LONG = [*TOY, "--epochs", "100000", "--save-every", "50", "--checkpoint", "run"]
NO_WORD = r"its connection closed \(signal 9 or _exit\)"  # all that systems before Linux 6.15 tell


class DeadRankTest(RanksTest):
    def dies(self, launcher, code, rank, cause, kill, **variables):
        """Rank `rank` of 4 dies by `kill(pid)` in the middle; `code`: what the launcher may end with."""
        job = self.start(launcher, 4, *LONG, **variables)
        pid = self.reach(job, 120)[rank]
        kill(pid)
        since = time.monotonic()
        self.assert_ends(job, *code)
        self.assert_gone(job, since, 10)
        expected = rf"convoy: error: \[rank {rank}\] communication: dead: {cause}, host {HOST}, pid {pid}, last seen .*step \d+"
        self.assertEqual(len(set(job.error_lines)), 1, job.err)  # launch repeats it where more has followed
        self.assertRegex(job.error_lines[0], f"^{expected}$")
        self.assertEqual(job.err.rstrip().splitlines()[-1], job.error_lines[0])
        self.assert_resumes(*TOY)

    def both(self, codes, *arguments, **variables):
        for launcher, code in zip(LAUNCHERS, codes):
            with self.subTest(launcher=launcher):
                self.setUp()
                self.dies(launcher, code, *arguments, **variables)

    def test_killed(self):
        cause = rf"(killed by signal 9 \(SIGKILL\)|{NO_WORD})"
        self.both(((128 + 9,), (5,)), 2, cause, lambda pid: os.kill(pid, signal.SIGKILL))

    def test_crashed(self):
        cause = r"killed by signal 11 \(SIGSEGV\)"
        self.both(((128 + 11,), (5,)), 2, cause, lambda pid: os.kill(pid, signal.SIGSEGV))

    def test_called_exit(self):
        def leave(_pid):
            with open(self.path("leave"), "w", encoding="utf-8"):
                pass

        for launcher, code in zip(LAUNCHERS, ((1, 5), (5,))):  # under mpirun the others may be quicker
            with self.subTest(launcher=launcher):
                self.setUp()
                self.dies(launcher, code, 1, "exited with code 1", leave, **trouble(1, exit=self.path("leave")))

    def test_rank_0_dies(self):
        cause = rf"(killed by signal 9 \(SIGKILL\)|{NO_WORD})"
        self.dies("launch", (5,), 0, cause, lambda pid: os.kill(pid, signal.SIGKILL))


class RestartTest(RanksTest):
    def test_a_killed_rank_costs_nothing_but_time(self):
        words = [*TOY, "--epochs", "12", "--save-every", "100", "--eval-every", "100"]
        self.good("mpirun", 2, *words)
        undisturbed = self.hash_of_end()
        os.remove(self.path("log"))
        job = self.start("launch --restarts 1", 2, *words, "--checkpoint", "run")
        first = self.reach(job, 250)
        os.kill(first[1], signal.SIGKILL)
        self.assertEqual(job.wait(), 0, job.err)
        self.assertRegex(job.err, r"convoy: launch: try 2 of 2, from step [1-9]\d*00 of run, after \[rank 1\] communication: dead")
        self.assertEqual(self.hash_of_end(), undisturbed)


if __name__ == "__main__":
    main()
