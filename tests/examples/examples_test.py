#!/usr/bin/env python3
"""The examples as programs: what they print alone, with workers in threads, and as ranks of mpirun.

Usage: examples_test.py FOLDER_OF_PROGRAMS SOURCE [Alone | Ranks]
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import environment, mpirun  # noqa: E402

PROGRAMS = SOURCE = ""
LIMIT = 50  # seconds, of each run


def losses(text):
    return [float(number) for number in re.findall(r"Loss: (\S+)", text)]


class Example(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_alone(self, name, *words):
        done = subprocess.run([os.path.join(PROGRAMS, name), *words], cwd=self.folder, env=environment(),
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def run_ranks(self, ranks, name, *words):
        done = mpirun("-n", str(ranks), "--wdir", self.folder, os.path.join(PROGRAMS, name), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_equal_losses(self, text, expected):
        found = losses(text)
        self.assertEqual(len(found), len(expected), text)
        for loss, right in zip(found, expected):
            self.assertAlmostEqual(loss, right, delta=1e-5 * right)

    def check_line(self, text, ranks):
        """All that `line` may print, in the order of each rank; returns the losses."""
        numbers = re.findall(r"^Epoch (\d+), Loss: (\S+)$", text, re.M)
        self.assertEqual([int(epoch) for epoch, _ in numbers], list(range(1, 11)), text)
        expected = [f"Process {rank} initialized" for rank in range(ranks)]
        expected += ["Process group destroyed"] * ranks + ["Model saved by rank 0"] * 10
        expected += [f"Epoch {epoch}, Loss: {loss}" for epoch, loss in numbers]
        self.assertEqual(sorted(text.splitlines()), sorted(expected))
        with open(os.path.join(self.folder, "line.safetensors"), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        self.assertEqual({name: header[name]["shape"] for name in ("weight", "bias")}, {"weight": [1, 10], "bias": [1]})
        return losses(text)


class Alone(Example):
    def test_line_on_noise_stops_at_its_variance(self):
        text = self.run_alone("line")
        found = self.check_line(text, 1)
        lines = text.splitlines()
        self.assertEqual(lines[0], "Process 0 initialized")
        self.assertEqual(lines[2::2], ["Model saved by rank 0"] * 10)
        self.assertEqual(lines[-1], "Process group destroyed")
        self.assertLess(found[-1], found[0])
        self.assertTrue(0.9 < found[-1] < 1.1, found)

    def test_line_learns_what_can_be_learnt(self):
        self.assertLess(self.check_line(self.run_alone("line", "--learnable"), 1)[-1], 1e-9)

    def test_toy_is_the_same_with_any_number_of_workers(self):
        alone = losses(self.run_alone("toy"))
        self.assertEqual(sorted(alone, reverse=True), alone)
        for workers in (2, 3, 20):  # the shares of 3 are uneven
            text = self.run_alone("toy", str(workers))
            self.check_equal_losses(text, alone)
            for rank in range(workers):
                self.assertIn(f"Running basic DDP example on rank {rank}.\n", text)

    def test_toy_over_two_devices_is_pytorch_on_one(self):
        with open(os.path.join(SOURCE, "tests", "reference", "small.json"), encoding="utf-8") as file:
            expected = next(case for case in json.load(file) if case["model"] == "toy")["losses"]
        self.check_equal_losses(self.run_alone("toy_two_devices"), expected)
        self.check_equal_losses(self.run_alone("toy_two_devices", "ref:0", "cpu:0"), expected)

    def test_data_parallel_is_one_device(self):
        one = self.run_alone("data_parallel", "cpu:0")
        self.assertIn("Let's use 1 devices!", one)
        three = self.run_alone("data_parallel", "cpu:0", "cpu:1", "cpu:2")
        self.assertIn("Let's use 3 devices!", three)
        self.assertIn("Outside: input size 10, output size (10, 5)", three)
        self.check_equal_losses(three, losses(one))

    def test_checkpoint_allocates_on_each_worker_s_own_device(self):
        text = self.run_alone("checkpoint", "2")
        for rank in range(2):
            self.assertIn(f"Rank {rank} loaded 4 tensors, allocations on cpu:{rank}: 4\n", text)
        self.assertEqual(os.listdir(self.folder), [])
        text = self.run_alone("checkpoint", "2", "cpu:0")
        self.assertIn("Rank 0 loaded 4 tensors, allocations on cpu:0: 8\n", text)
        self.assertIn("Rank 1 loaded 4 tensors, allocations on cpu:1: 0\n", text)


class Ranks(Example):
    def test_line(self):
        self.assertLess(self.check_line(self.run_ranks(2, "line", "--learnable"), 2)[-1], 1e-9)

    def test_toy_with_processes_and_with_threads_in_each(self):
        alone = losses(self.run_alone("toy"))
        self.check_equal_losses(self.run_ranks(3, "toy"), alone)
        self.check_equal_losses(self.run_ranks(2, "toy", "2"), alone)

    def test_checkpoint(self):
        text = self.run_ranks(2, "checkpoint")
        for rank in range(2):
            self.assertIn(f"Rank {rank} loaded 4 tensors, allocations on cpu:0: 4\n", text)


if __name__ == "__main__":
    PROGRAMS, SOURCE, *names = sys.argv[1:]
    PROGRAMS = os.path.abspath(PROGRAMS)
    unittest.main(argv=[sys.argv[0], *names])
