#!/usr/bin/env python3
"""How ranks meet under mpirun: late ones, absent ones, and those that no launcher has joined.

Usage: mpi_meeting_test.py MPI_MEET HANG_SHIM [names of tests]
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest

from mpirun import environment, mpirun

MEET = ""
HANG_SHIM = ""


def alone(*words, **variables):
    """The program without mpirun."""
    return subprocess.run(
        [MEET, *words], env={**environment(), **variables}, capture_output=True, timeout=30, check=False, text=True
    )


class MeetingTest(unittest.TestCase):
    def test_a_late_rank_joins(self):
        late = f"[ $OMPI_COMM_WORLD_RANK = 1 ] && sleep 2; exec {MEET} 20"
        run = mpirun("-n", "3", "sh", "-c", late)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"])

    def test_absent_ranks_are_named(self):
        absent = f"[ $OMPI_COMM_WORLD_RANK -ge 2 ] && exec sleep 50; exec {MEET} 2"
        begin = time.monotonic()
        run = mpirun("-n", "4", "sh", "-c", absent)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(run.returncode, 5)
        line = "convoy: error: [rank 2] communication: meeting: ranks 2,3 of 4 have not come within 2 s, host "
        self.assertIn(line, run.stderr)

    def test_a_timeout_may_be_longer_than_a_clock_counts(self):
        run = mpirun("-n", "2", MEET, "1e300")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_rank_that_hangs_once_it_has_come_holds_nobody(self):
        for function, text in (
            ("memfd_create", "convoy: error: communication: meeting: all 3 ranks of host .* have come, but MPI has not joined them within 2 s"),
            ("getrandom", r"convoy: error: \[rank 0\] communication: meeting: it came, and said nothing for 2 s"),
        ):
            hangs = f"[ $OMPI_COMM_WORLD_RANK = 0 ] && export LD_PRELOAD={HANG_SHIM}; exec {MEET} 2"
            begin = time.monotonic()
            run = mpirun("-n", "3", "sh", "-c", hangs, HANG_AFTER=function)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual(run.returncode, 5, run.stderr)
            self.assertRegex(run.stderr, text)

    def test_a_launcher_of_another_mpi_leaves_each_rank_alone(self):
        run = alone("5", PMI_RANK="0", PMI_SIZE="2")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("usage: PMI_SIZE is 2, but MPI has 1", run.stderr)

    def test_a_process_alone_does_not_start_mpi(self):
        run = alone("5", "auto")
        self.assertEqual((run.returncode, run.stdout), (0, "rank 0 of 1\n"), run.stderr)
        run = alone("5", "mpi")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no launcher's variables", run.stderr)

    def test_threads_do_not_join_processes(self):
        run = mpirun("-n", "2", MEET, "5", "thread")
        self.assertEqual(run.returncode, 2)
        self.assertIn("comm thread: it joins workers of one process, but 2 processes were started", run.stderr)

    def test_nothing_is_left_in_shared_memory(self):
        with tempfile.TemporaryDirectory() as folder:  # for Open MPI's own memory
            run = mpirun("-n", "2", MEET, "20", OMPI_MCA_btl_vader_backing_directory=folder)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    MEET = os.path.abspath(sys.argv.pop(1))
    HANG_SHIM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
