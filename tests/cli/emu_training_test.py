#!/usr/bin/env python3
"""Training on emulated GPUs: the losses of the reference, in every precision and layout.

Usage: emu_training_test.py PROGRAM [names of tests]
EMU_MODEL names the network: resnet18, or resnet50 where there is time.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import environment, mpirun  # noqa: E402

PROGRAM = ""
LIMIT = 500  # seconds, of each run
MODEL = os.environ.get("EMU_MODEL", "resnet18")
TRAIN = ["train", "--model", MODEL, "--image-size", "32", "--batch", "4", "--data", "synthetic:8", "--json"]
FROZEN = ["--bn", "frozen", "--lr", "0.001", "--steps", "2"]
FIRST_STEP = 1e-3  # largest relative difference of losses to the reference in float32


def run(processes, *words):
    command = [PROGRAM, *words]
    if processes > 1:
        return mpirun("-n", str(processes), *command, limit=LIMIT)
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False)


class EmuTest(unittest.TestCase):
    def good(self, processes, *words):
        done = run(processes, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def losses(self, devices, *words, processes=1):
        lines = self.good(processes, *TRAIN, "--devices", devices, *words)
        return [line["loss"] for line in lines if line["type"] == "step"]

    def assert_near(self, found, expected, bound):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertTrue(math.isfinite(a), found)
            self.assertLessEqual(abs(a - b), bound * abs(b), (found, expected))


class OneDevice(EmuTest):
    def test_first_losses_are_those_of_the_reference(self):
        expected = self.losses("ref:0", "--steps", "1")
        self.assert_near(self.losses("emu:0", "--steps", "1"), expected, FIRST_STEP)
        self.assert_near(self.losses("emu:0", "--steps", "1", "--precision", "tf32"), expected, 1e-2)
        self.assert_near(self.losses("emu:0", "--steps", "1", "--precision", "bf16"), expected, 5e-2)

    def test_two_steps_with_frozen_batch_norm(self):
        expected = self.losses("ref:0", *FROZEN)
        self.assert_near(self.losses("emu:0", *FROZEN), expected, 2e-3)
        self.assert_near(self.losses("emu:0", *FROZEN, "--precision", "bf16"), expected, 5e-2)

    def test_doubles_run_through_the_plain_kernels(self):
        words = ["--steps", "1", "--precision", "fp64"]
        self.assert_near(self.losses("emu:0", *words), self.losses("ref:0", *words), 1e-9)

    def test_a_checkpoint_serves_other_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--steps", "1", "--checkpoint", folder, "--precision", "bf16"]
            self.losses("emu:0", *words)
            evaluate = ["eval", "--checkpoint", folder, "--data", "synthetic:8", "--json"]
            emu, ref = ([line for line in self.good(1, *evaluate, "--devices", name) if line["type"] == "eval"][0]
                        for name in ("emu:0", "ref:0"))
            self.assertEqual(emu["images"], ref["images"])
            self.assert_near([emu["loss"]], [ref["loss"]], 1e-3)


class Several(EmuTest):
    def test_two_stages_have_the_bits_of_one_device(self):
        words = ["--steps", "2", "--micro-batch-size", "2"]
        alone = self.losses("emu:0", *words)
        for devices in ("emu:0,emu:1", "emu:0,emu:0"):
            self.assertEqual(self.losses(devices, *words, "--stages", "2", "--cut", "layer3"), alone)

    def test_replicas_in_threads_and_processes_are_equal(self):
        words = [*FROZEN, "--replicas", "2"]
        threads = self.losses("emu:0,emu:1", *words)
        self.assert_near(threads, self.losses("ref:0", *FROZEN), 2e-3)
        self.assertEqual(self.losses("emu:0", *words, processes=2), threads)

    def test_replicas_of_stages_in_processes_of_two_devices(self):
        words = [*FROZEN, "--stages", "2", "--cut", "layer3", "--micro-batch-size", "1"]
        self.assert_near(self.losses("emu:0,emu:1", *words, processes=2), self.losses("ref:0", *FROZEN), 2e-3)

    def test_splits_are_compared(self):
        # Micro-batches of one image, whose maps end at 1x1: frozen statistics alone can take them.
        lines = self.good(1, "bench", "split", "--model", "resnet18", "--image-size", "32", "--classes", "10", "--batch", "2",
                          "--splits", "1", "--repeats", "1", "--bn", "frozen", "--devices", "emu:0,emu:1", "--json")
        rows = [(line["mode"], line["split"]) for line in lines if "mode" in line]
        self.assertEqual(rows, [("single", 2), ("single", 1), ("model-parallel", 2), ("pipeline", 1), ("data-parallel", 1)])

    def test_verify_finds_two_stages_in_bf16_equal(self):
        words = ["verify", *TRAIN[1:], "--devices", "emu:0,emu:1", "--stages", "2", "--cut", "layer3", "--steps", "1",
                 "--precision", "bf16", "--micro-batch-size", "2"]
        self.assertTrue(self.good(1, *words)[-1]["equal"])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
