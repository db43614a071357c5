#!/usr/bin/env python3
"""The examples as programs: what they print alone, with workers in threads, and as ranks of mpirun.

Usage: examples_test.py FOLDER_OF_PROGRAMS SOURCE [Alone | ResNet50 | Mistakes | Ranks]
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


class ResNet50(Example):
    """One network over two devices in three ways, at 32 pixels."""

    def weights(self, name, *words):
        text = self.run_alone(name, *words)
        self.assertEqual(len(losses(text)), 2)
        return re.search(r"^Weights: ([0-9a-f]{16})$", text, re.M).group(1)

    def overlap(self, name, phase):
        """Microseconds during which both devices run convolutions of that phase."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual([event["args"]["name"] for event in events[:2]], ["cpu:0", "cpu:1"])
        rows = ([], [])
        for event in events[2:]:
            if event["cat"] == phase and event["name"].startswith("conv2d"):
                rows[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        self.assertTrue(all(rows), f"{name}: {phase} of a device is missing")
        return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in rows[0] for b in rows[1])

    def test_pipelines_by_hand_and_by_class_are_equal_and_keep_both_devices_at_work(self):
        by_hand = self.weights("resnet50_pipeline_by_hand", "60", "32", "by_hand.json")
        self.assertEqual(self.weights("resnet50_pipeline", "60", "32", "pipeline.json"), by_hand)
        for trace in ("by_hand.json", "pipeline.json"):
            for phase in ("forward", "backward"):
                self.assertGreater(self.overlap(trace, phase), 0, f"{phase} in {trace}")

    def test_whole_batches_keep_one_device_waiting(self):
        whole = self.weights("resnet50_model_parallel", "20", "32", "whole.json")
        self.assertEqual(self.overlap("whole.json", "forward"), 0)
        self.assertEqual(self.overlap("whole.json", "backward"), 0)
        # With one micro-batch batch norm sees the same images, so that all three are one training.
        self.assertEqual(self.weights("resnet50_pipeline", "20"), whole)
        self.assertEqual(self.weights("resnet50_pipeline_by_hand", "20"), whole)
        self.assertNotEqual(self.weights("resnet50_pipeline", "22"), whole)


class Mistakes(Example):
    def check(self, words, *parts, code=2):
        name, *rest = words.split()
        done = subprocess.run([os.path.join(PROGRAMS, name), *rest], cwd=self.folder, env=environment(),
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_are_told_in_one_line(self):
        self.check("line --learnible", "usage: '--learnible' is no option of line")
        self.check("toy two", "'two' is no number of workers")
        self.check("checkpoint 2 gpu", "'gpu'")
        self.check("data_parallel cpu:0 cpu:0", "cpu:0 is named twice")
        self.check("toy_two_devices cpu:0", "1 devices named")
        for name in ("model_parallel", "pipeline_by_hand", "pipeline"):
            self.check(f"resnet50_{name} 0", "'0' is no positive number")
            self.check(f"resnet50_{name} 2 64px", "'64px' is no positive number")
        self.check("resnet50_pipeline 2 64 absent/trace.json", "absent/trace.json", code=7)


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
