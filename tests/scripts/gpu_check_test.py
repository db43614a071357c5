"""scripts/gpu_check: its dry run on emulated devices, its answer where there is no GPU, and its summary.

Usage: gpu_check_test.py BUILD [names of tests]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = ""


def gpu_check(*words):
    return subprocess.run([os.path.join(ROOT, "scripts/gpu_check"), *words], capture_output=True, text=True,
                          timeout=900, check=False)


def summary(folder):
    return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/gpu/summary.py"), folder], capture_output=True,
                          text=True, check=True).stdout


class GpuCheck(unittest.TestCase):
    def test_dry_run(self):
        with tempfile.TemporaryDirectory() as folder:
            done = gpu_check("--dry-run", "--no-build", "--build", BUILD, folder)
            with open(os.path.join(folder, "parts.jsonl"), encoding="utf-8") as file:
                parts = {line["part"]: line for line in map(json.loads, file)}
            self.assertEqual(done.returncode, 0, (parts, done.stderr))
            self.assertEqual([parts[name]["status"] for name in ("versions", "conformance", "kernel_tests", "step_fp32", "two_stages", "split")],
                             ["passed"] * 6, parts)
            self.assertIn(parts["torch_step"]["status"], ("passed", "skipped"))  # PyTorch may not be here
            self.assertIn("| convoy, fp32 | 2 |", done.stdout)
            self.assertIn("Two stages (two_stages): the bits of one device", done.stdout)
            self.assertRegex(done.stdout, r"\| pipeline \| 4 \| [a-z0-9-]+ \| [0-9.]+ \|")
            with open(os.path.join(folder, "summary.md"), encoding="utf-8") as file:
                self.assertIn(file.read(), done.stdout)

    @unittest.skipIf(shutil.which("nvidia-smi"), "there may be a GPU")
    def test_without_a_gpu(self):
        done = gpu_check("--no-build", "--build", BUILD)
        self.assertEqual(done.returncode, 77)
        self.assertIn("no GPU here", done.stdout)

    def test_a_failing_part_fails_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            done = gpu_check("--dry-run", "--no-build", "--build", os.path.join(folder, "nothing"), folder)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, r"\| conformance \| failed \| \d+ \| exit code 127: .*No such file")
            self.assertIn("| torch_step |", done.stdout)

    def test_unknown_options(self):
        self.assertEqual(gpu_check("--dry").returncode, 2)


class Summary(unittest.TestCase):
    def test_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, *lines):
                with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as file:
                    file.write("\n".join(lines))
            write("parts", '{"part":"build","status":"passed","seconds":3,"why":""}')
            write("ceilings", '{"ceiling":"copy","value":4.3e12,"unit":"bytes/s"}', '{"ceiling":"mma","value":4e14,"unit":"FLOP/s"}',
                  '{"ceiling":"launch","value":2e-6,"unit":"s"}')
            write("kernels_bf16", '{"bench":"kernels","name":"conv2d_forward","shape":"n1","count":3,"seconds":2e-5,'
                  '"limit_s":1e-5,"share_of_limit":0.5,"vendor_s":1.5e-5}', '{"bench":"kernels","name":"stopp')
            text = summary(folder)
        self.assertIn("| build | passed | 3 |  |", text)
        for line in ("| copy | 4300.0 GB/s |", "| mma | 400.0 TFLOP/s |", "| launch | 2.00 us |",
                     "| conv2d_forward | n1 | 3 | 20.0 | 10.0 | 50 % | 15.0 |"):
            self.assertIn(line, text)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
