#!/usr/bin/env python3
"""Ranks that hang, pause, or are slow while they train: who hangs is named in time, the others raise no alarm.

Usage: stuck_rank_test.py PROGRAM TROUBLE [names of tests]
"""
import os
import re
import signal
import threading
import time

from ranks import HOST, LAUNCHERS, SLOW_STEPS, TOY, RanksTest, main, trouble

TIMEOUT = 4  # seconds: --comm-timeout here
QUICK = [*TOY, "--comm-timeout", str(TIMEOUT)]


class StuckRankTest(RanksTest):
    def test_a_stopped_rank_is_named(self):
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                self.setUp()
                job = self.start(launcher, 4, *QUICK, "--epochs", "100000")
                pid = self.reach(job, 120)[3]
                time.sleep(0.5)  # reports come five times a second
                os.kill(pid, signal.SIGSTOP)
                since = time.monotonic()
                self.assert_ends(job, 5)
                self.assertLess(time.monotonic() - since, TIMEOUT + 5)
                self.assert_gone(job, time.monotonic(), 10)
                where = r"in \w+ \d+ of step \d+"
                inside = r"(computing|loading|in [A-Z]+ [\d.]+)"  # or an instruction of the schedule
                doing = rf"({where}|{inside} (in|of) step \d+, before \w+ \d+ of step \d+|evaluating .*)"
                expected = (
                    rf"convoy: error: \[rank 3\] communication: stuck {doing} since \d\d:\d\d:\d\d \({TIMEOUT} s\), "
                    rf"nothing heard of it, host {HOST}, pid {pid}; ranks 0,1,2 wait( {where})?"
                )
                self.assertRegex(job.err.rstrip().splitlines()[-1], f"^{expected}$")
                self.assertEqual(len(job.error_lines), 1, job.err)
                self.assertRegex(job.err, rf"convoy: rank 3: stuck .*; the run ends after {TIMEOUT} s\n")


class NoAlarmTest(RanksTest):
    def assert_at_most_a_warning(self, job):
        notes = re.findall(r"convoy: (.*)", job.err)
        known = ("ranks meet over", "warning: ", "rank ")
        self.assertFalse([note for note in notes if not note.startswith(known)], job.err)

    def test_a_pause(self):
        words = [*QUICK, "--epochs", "12"]
        self.good("mpirun", 4, *words)
        undisturbed = self.hash_of_end()
        os.remove(self.path("log"))
        job = self.start("launch", 4, *words)
        pid = self.reach(job, 200)[3]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(TIMEOUT / 2 + 0.3)
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(job.wait(), 0, job.err)
        self.assert_at_most_a_warning(job)
        self.assertEqual(self.hash_of_end(), undisturbed)

    def test_a_slow_loader(self):
        self.make_images(8)
        words = [*SLOW_STEPS, "--batch", "16", "--data", "folder:images", "--loader-threads", "1", "--comm-timeout", "2"]
        self.good("launch", 2, *words)
        undisturbed = self.hash_of_end()
        os.remove(self.path("log"))
        job = self.good("launch", 2, *words, **trouble(1, open="train-:0.35"))  # a batch takes it more than 2 s
        self.assert_at_most_a_warning(job)
        self.assertEqual(self.hash_of_end(), undisturbed)

    def test_a_slow_save(self):
        job = self.start("launch", 4, *QUICK, "--checkpoint", "run", **trouble(0, fsync=1))
        begin = time.monotonic()
        self.assertEqual(job.wait(), 0, job.err)
        self.assertGreater(time.monotonic() - begin, 5)
        self.assert_at_most_a_warning(job)
        self.assert_resumes(*TOY)

    def test_a_slow_rank_is_named(self):
        words = [*SLOW_STEPS, "--data", "synthetic:1000"]
        job = self.start("mpirun", 4, *words, "--epochs", "100000")
        pid = self.reach(job, 3)[2]
        over = threading.Event()

        def brake():
            while not over.is_set():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.12)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)

        thread = threading.Thread(target=brake)
        thread.start()
        try:
            note = rf"convoy: rank 2 is slow: [\d.]+ s of its own work in a step, [\d.]+ times the median of [\d.]+ s; host {HOST}, pid {pid}\n"
            self.until(lambda: re.search(note, job.err), "a note", job, 40)
        finally:
            over.set()
            thread.join()
        os.kill(job.ranks()[0], signal.SIGTERM)
        self.assertEqual(job.wait(), 143, job.err)


if __name__ == "__main__":
    main()
