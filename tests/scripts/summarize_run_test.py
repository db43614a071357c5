"""summarize_run.py: the last evaluation counts; a run without an end is refused."""
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import summarize_run  # noqa: E402

EVALS = [{"type": "eval", "epoch": n, "loss": 1.0, "top1": top1, "top5": 0.99, "images": 10000}
         for n, top1 in enumerate((0.5, 0.8412))]
END = {"type": "end", "steps": 375, "seconds": 400.4}


def summary_of(lines):
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        return summarize_run.summary(summarize_run.last_of(file.name))


class Summary(unittest.TestCase):
    def test_last_evaluation_and_end(self):
        self.assertEqual(summary_of([*EVALS, END]),
                         ["test top-1   84.12 % of 10000 images (top-5 99.00 %)", "training     400 s, 375 steps"])

    def test_an_unfinished_run_is_refused(self):
        self.assertRaises(SystemExit, summary_of, EVALS)
        self.assertRaises(SystemExit, summary_of, [END])


if __name__ == "__main__":
    unittest.main()
