#!/usr/bin/env python3
"""Replicas on emulated GPUs add their gradients over NCCL: as threads and as ranks, and when a rank goes wrong.

Usage: nccl_test.py PROGRAM TROUBLE [names of tests]
"""
import json
import os
import re
import signal
import subprocess
import time

import ranks
from ranks import HOST, LIMIT, RanksTest, environment, main

TOY = ["--model", "toy", "--data", "synthetic:60", "--limit", "24", "--batch", "8", "--lr", "0.05", "--comm-timeout", "20",
       "--steps", "3"]
LONG = ["--model", "toy", "--data", "synthetic:800", "--batch", "8", "--lr", "0.01", "--epochs", "100000", "--devices",
        "emu:0"]


def devices(kind, count):
    return ["--devices", ",".join(f"{kind}:{i}" for i in range(count))]


class Equal(RanksTest):
    def train(self, processes, *words):
        """The run line and, without rates and times, those that must be equal."""
        command = [ranks.PROGRAM, "train", "--json", *words]
        variables = {}
        if processes > 1:
            command = [*self.command("mpirun", processes), *command]
            variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line]
        for line in lines:
            line.pop("images_per_s", None)
            line.pop("seconds", None)
        return lines[0], [line for line in lines if line["type"] in ("step", "end")]

    def test_threads_and_ranks(self):
        run, threads = self.train(1, *TOY, *devices("emu", 2))
        self.assertEqual((run["backend"], run["replicas"]), ("nccl", 2))
        self.assertEqual(len(threads), 4)
        run, processes = self.train(2, *TOY, *devices("emu", 1))
        self.assertEqual((run["backend"], run["replicas"]), ("nccl", 2))
        self.assertEqual(processes, threads)
        # Two values have one sum, whoever adds them, and wherever.
        run, by_host = self.train(2, *TOY, *devices("emu", 1), "--comm", "mpi")
        self.assertEqual(run["backend"], "mpi")
        self.assertEqual(by_host, threads)

    def test_ranks_of_several_devices(self):
        words = [*TOY, "--comm", "nccl"]
        self.assertEqual(self.train(2, *words, *devices("emu", 2))[1], self.train(1, *words, *devices("emu", 4))[1])

    def test_stages_and_replicas(self):
        words = [*TOY, "--replicas", "2", "--stages", "2", "--micro-batches", "2"]
        run, threads = self.train(1, *words, *devices("emu", 4))
        self.assertEqual((run["backend"], run["replicas"]), ("nccl", 2))
        self.assertEqual(self.train(2, *words, *devices("emu", 2))[1], threads)


class Refused(RanksTest):
    def test_other_devices(self):
        for words in (["train", *TOY], ["bench", "allreduce"]):
            done = subprocess.run([ranks.PROGRAM, *words, "--comm", "nccl", "--devices", "cpu:0,cpu:1"], env=environment(),
                                  capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("usage: --comm nccl: cpu:0 is no GPU", done.stderr)


class Bench(RanksTest):
    def test_all_reduce(self):
        done = subprocess.run([ranks.PROGRAM, "bench", "allreduce", "--devices", "emu:0,emu:1", "--bytes", "4000,1MiB",
                               "--repeats", "2", "--json"], env=environment(), capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(line["impl"], line["bytes"], line["ranks"]) for line in lines],
                         [("nccl", 4000, 2), ("nccl", 1 << 20, 2)])


class Trouble(RanksTest):
    def test_a_stopped_rank_is_named(self):
        job = self.start("launch", 3, *LONG, "--comm-timeout", "4")
        pid = self.reach(job, 20)[1]
        time.sleep(0.5)  # reports come five times a second
        os.kill(pid, signal.SIGSTOP)
        self.assert_ends(job, 5)
        self.assert_gone(job, time.monotonic(), 10)
        last = job.err.rstrip().splitlines()[-1]
        self.assertRegex(last, rf"^convoy: error: \[rank 1\] communication: stuck .*, host {HOST}, pid {pid}; ranks 0,2 wait")

    def test_a_killed_rank_is_named(self):
        job = self.start("launch", 3, *LONG, "--comm-timeout", "20")
        pid = self.reach(job, 20)[2]
        os.kill(pid, signal.SIGKILL)
        since = time.monotonic()
        self.assert_ends(job, 5)
        self.assert_gone(job, since, 10)
        last = job.err.rstrip().splitlines()[-1]
        self.assertTrue(re.match(rf"convoy: error: \[rank 2\] communication: dead: .*, pid {pid}, ", last), job.err)


if __name__ == "__main__":
    main()
