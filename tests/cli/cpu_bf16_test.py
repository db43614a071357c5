#!/usr/bin/env python3
"""Training on CPUs in bf16: the losses of the reference, the same bits however a network is split, and checkpoints.

Usage: cpu_bf16_test.py PROGRAM
Skipped (77) where the CPU has no instructions for bf16; that it is refused there is seen everywhere.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
TRAIN = ["train", "--model", "resnet18", "--image-size", "64", "--batch", "4", "--data", "synthetic:8", "--json",
         "--threads", "1"]
BF16 = [*TRAIN, "--precision", "bf16"]
FROZEN = ["--bn", "frozen", "--lr", "0.001", "--steps", "2"]


def run(*words, **variables):
    return subprocess.run([PROGRAM, *words], env={**os.environ, **variables}, capture_output=True, text=True,
                          timeout=120, check=False)


def refusal():
    """What the program says where it refuses bf16, else nothing."""
    done = run("train", "--model", "toy", "--precision", "bf16", "--steps", "1", "--json")
    return done.stderr if "AVX512_BF16 is needed" in done.stderr else ""


class Bf16Test(unittest.TestCase):
    def good(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def of(self, kind, *words):
        return [line for line in self.good(*words) if line["type"] == kind]

    def losses(self, *words):
        return [line["loss"] for line in self.of("step", *words)]

    def assert_near(self, found, expected, bound):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertLessEqual(abs(a - b), bound * abs(b), (found, expected))

    def test_losses_are_those_of_the_reference(self):
        expected = self.losses(*TRAIN, *FROZEN, "--devices", "ref:0", "--image-size", "32")
        found = self.losses(*BF16, *FROZEN, "--image-size", "32")
        self.assert_near(found, expected, 5e-2)
        self.assertNotEqual(found, self.losses(*TRAIN, *FROZEN, "--image-size", "32"))

    def test_stages_have_the_bits_of_one_device(self):
        words = ["--steps", "3", "--micro-batch-size", "2"]
        alone = self.of("end", *BF16, *words)[0]["weights_hash"]
        split = self.of("end", *BF16, *words, "--devices", "cpu:0,cpu:1", "--stages", "2", "--cut", "layer3")
        self.assertEqual(split[0]["weights_hash"], alone)

    def test_replicas_agree_and_are_near_one_device(self):
        words = [*BF16, *FROZEN, "--devices", "cpu:0,cpu:1", "--replicas", "2"]
        self.assertEqual(self.losses(*words), self.losses(*words))
        self.assert_near(self.losses(*words), self.losses(*BF16, *FROZEN), 5e-3)

    def test_verify_finds_two_stages_equal(self):
        words = ["--devices", "cpu:0,cpu:1", "--stages", "2", "--cut", "layer3", "--steps", "1", "--micro-batch-size", "2"]
        self.assertTrue(self.good("verify", *BF16[1:], *words)[-1]["equal"])

    def test_resumed_is_never_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [*BF16, "--checkpoint", folder]
            self.good(*words, "--steps", "1")
            resumed = self.of("end", *words, "--steps", "3", "--resume")[0]["weights_hash"]
        self.assertEqual(resumed, self.of("end", *BF16, "--steps", "3")[0]["weights_hash"])

    def test_a_checkpoint_serves_other_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good(*BF16, "--steps", "1", "--image-size", "32", "--checkpoint", folder)
            evaluate = ["eval", "--checkpoint", folder, "--data", "synthetic:8", "--json"]
            ours, half, ref = (self.of("eval", *evaluate, *more)[0] for more in
                               ([], ["--precision", "bf16"], ["--devices", "ref:0"]))
        self.assertEqual((ours["images"], half["images"]), (ref["images"], ref["images"]))
        self.assert_near([ours["loss"], half["loss"]], [ref["loss"]] * 2, 5e-2)


class Refused(unittest.TestCase):
    def test_without_instructions(self):
        done = run("train", "--model", "toy", "--precision", "bf16", "--steps", "1", CONVOY_CPU_ISA="baseline")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--precision bf16 on cpu:0: AVX512_BF16 is needed, CONVOY_CPU_ISA allows", done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    problem = refusal()
    if not problem or len(sys.argv) > 1:
        unittest.main()
    refused = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Refused))
    print("skipped, no bf16 here:", problem)
    sys.exit(77 if refused.wasSuccessful() else 1)
