#!/usr/bin/env python3
"""`convoy verify` as threads and as ranks: equal layouts, a layout that differs, and what it refuses.

Usage: verify_test.py PROGRAM TROUBLE [names of tests]
"""
import json
import os
import subprocess
import sys
import unittest

import ranks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import LIMIT, mpirun  # noqa: E402

RESNET18 = ["--model", "resnet18", "--data", "synthetic:60", "--limit", "12", "--image-size", "32", "--batch", "8",
            "--micro-batch-size", "2", "--lr", "0.01", "--threads", "1", "--comm-timeout", "30"]
TWO_STAGES = ["--stages", "2", "--cut", "layer2.0.conv2", "--schedule", "zb-h1"]


class VerifyTest(unittest.TestCase):
    def threads(self, code, *words):
        command = [ranks.PROGRAM, "verify", *RESNET18, *words]
        return self.ended(code, subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=LIMIT,
                                               check=False))

    def processes(self, code, count, *words, **variables):
        return self.ended(code, mpirun("-n", str(count), ranks.PROGRAM, "verify", *RESNET18, *words, **variables))

    def ended(self, code, done):
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def equal(self, done):
        line = json.loads(done.stdout)
        self.assertEqual((line["type"], line["equal"], line["bitwise"]), ("verify", True, True))
        self.assertEqual((line["largest"]["gradient"], line["largest"]["weight"], line["first_layer"]), (0, 0, None))
        return line

    def test_layouts_of_threads_and_ranks_are_equal(self):
        # 12 images: the second step's batch is short.
        one = self.equal(self.threads(0, "--json", "--devices", "cpu:0"))
        for other in (
            self.threads(0, "--json", "--devices", "cpu:0,cpu:1", *TWO_STAGES),
            self.processes(0, 2, "--json", *TWO_STAGES),
        ):
            line = self.equal(other)
            for key in ("steps", "compared", "loss", "grad_norm"):
                self.assertEqual(line[key], one[key], key)
        self.assertEqual(one["steps"], 3)

    def test_text_for_people(self):
        done = self.threads(0, "--devices", "cpu:0", "--steps", "1")
        self.assertRegex(done.stdout, r"^equal: 1 steps of the layout and of one device, \d+ outputs and tensors")

    def test_a_rank_whose_arrays_are_others_ends_all_with_6(self):
        done = self.processes(6, 2, "--json", "--steps", "1", *TWO_STAGES, **ranks.trouble(1, hash=1))
        line = json.loads(done.stdout)
        self.assertIs(line["equal"], False)
        # Rank 1 has the network's end, and the values themselves are right.
        self.assertEqual((line["first_phase"], line["first_layer"], line["first_step"]), ("backward", "fc", 1))
        self.assertEqual((line["largest"]["gradient"], line["largest"]["loss"]), (0, 0))
        errors = [text for text in done.stderr.splitlines() if text.startswith("convoy: error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertRegex(errors[0], r"numerics: the layout is not equal to one device: step 1, backward: fc \(fc\.\w+\)")

    def test_layouts_that_do_not_fit_are_refused(self):
        done = self.threads(2, "--devices", "cpu:0,cpu:1", "--stages", "3", "--cut", "layer2,layer3")
        self.assertIn("--stages 3", done.stderr)
        self.assertIn("does not go with", self.threads(2, "--checkpoint", "run").stderr)


if __name__ == "__main__":
    ranks.main()
