#!/usr/bin/env python3
"""bench kernels on an emulated GPU: figures of every kernel that a step of ResNet-50 has.

Usage: bench_kernels_emu_test.py PROGRAM
"""
import json
import subprocess
import sys
import unittest

PROGRAM = ""


class Figures(unittest.TestCase):
    def test_figures(self):
        done = subprocess.run([PROGRAM, "bench", "kernels", "--devices", "emu:0", "--json"], capture_output=True,
                              text=True, timeout=250, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({line["precision"] for line in lines}, {"fp32", "tf32", "bf16"})
        for word in ("simt_kernel", "mma_kernel", "batch_norm_apply", "max_pool2d", "cross_entropy", "Sgd<", "Adamw<"):
            self.assertTrue(any(word in line["name"] for line in lines), word)
        for line in lines:
            self.assertGreaterEqual(line["bytes_read"], line["compulsory_read"], line)
            self.assertGreaterEqual(line["bytes_written"], line["compulsory_written"], line)
            self.assertGreaterEqual(line["sectors_per_request"], line["ideal_sectors_per_request"], line)
            if "mma_kernel" in line["name"] or "simt_kernel" in line["name"]:
                self.assertEqual(line["bank_conflicts"], 0, line)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
