#!/usr/bin/env python3
"""bench allreduce and plan on two ranks: ours and the MPI library's sums in one run; a plan that one rank tells.

Usage: bench_mpi_test.py PROGRAM [names of tests]
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import mpirun  # noqa: E402

PROGRAM = ""
QUICK = ["--repeats", "2", "--comm-timeout", "30"]


class Plan(unittest.TestCase):
    def test_one_rank_tells_what_all_have_measured(self):
        done = mpirun("-n", "2", PROGRAM, "plan", "--model", "toy", "--batch", "8", "--threads", "1", "--comm-timeout",
                      "30", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([lines[0]["type"], lines[0]["workers"], lines[-1]["type"]], ["plan", 2, "recommendation"])
        timed = {line["layout"] for line in lines if line["type"] == "timed"}
        self.assertTrue({"single", "data-parallel"} <= timed, timed)


class BenchAllReduce(unittest.TestCase):
    def good(self, *words):
        done = mpirun("-n", "2", PROGRAM, "bench", "allreduce", *QUICK, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_json_lines_come_from_one_rank(self):
        lines = [json.loads(line) for line in self.good("--bytes", "4000,1MiB", "--json").splitlines()]
        found = [(line["impl"], line["bytes"], line["ranks"]) for line in lines]
        self.assertEqual(found, [("ring", 4000, 2), ("mpi", 4000, 2), ("ring", 1 << 20, 2), ("mpi", 1 << 20, 2)])
        for line in lines:
            self.assertEqual(line["bench"], "allreduce")
            self.assertAlmostEqual(line["bus_gb_s"] * line["median_s"] * 1e9 / line["bytes"], 1)

    def test_workers_of_several_processes_have_no_counterpart_in_the_library(self):
        table = self.good("--bytes", "64000", "--devices", "cpu:0,cpu:1").splitlines()
        self.assertEqual(len(table), 2, table)
        self.assertEqual(table[0].split(), ["impl", "ranks", "size", "median", "best", "GB/s"])
        self.assertEqual(table[1].split()[:4], ["ring", "4", "64", "kB"])

    def test_bytes_that_are_no_whole_values(self):
        done = mpirun("-n", "2", PROGRAM, "bench", "allreduce", "--bytes", "5", *QUICK)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("5 bytes, expected whole fp32 values", done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
