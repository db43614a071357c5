"""run_tests.py: what it reads from the summaries of Catch2 2 and 3, of unittest, and from exit codes alone."""
import json
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import run_tests  # noqa: E402


def counts(result, stdout="", stderr=""):
    return run_tests.counts_of({"result": result, "stdout": stdout, "stderr": stderr})


class Counts(unittest.TestCase):
    def test_catch2_all_passed(self):
        self.assertEqual(counts("OK", "===\nAll tests passed (4 assertions in 2 test cases)\n\n"), (2, 0, 0))
        self.assertEqual(counts("OK", "All tests passed (1 assertion in 1 test case)\n"), (1, 0, 0))

    def test_catch2_some_failed(self):
        text = "test cases: 3 | 2 passed | 1 failed\nassertions: 4 | 3 passed | 1 failed\n"
        self.assertEqual(counts("FAIL", text), (2, 1, 0))
        self.assertEqual(counts("FAIL", "test cases: 1 | 1 failed\n"), (0, 1, 0))

    def test_catch2_version_3_skipped(self):
        self.assertEqual(counts("OK", "test cases: 5 | 3 passed | 2 skipped\n"), (3, 0, 2))

    def test_the_worst_of_several_ranks(self):
        good = "All tests passed (4 assertions in 2 test cases)\n"
        bad = "test cases: 2 | 1 passed | 1 failed\n"
        self.assertEqual(counts("FAIL", good + bad + good), (1, 1, 0))

    def test_a_bad_end_after_good_tests_is_a_failure(self):
        self.assertEqual(counts("FAIL", "All tests passed (4 assertions in 2 test cases)\n"), (2, 1, 0))
        self.assertEqual(counts("TIMEOUT", "nothing yet"), (0, 1, 0))

    def test_a_program_without_tests_is_a_failure(self):
        self.assertEqual(counts("OK", "test cases: 0 | 0 passed\n"), (0, 1, 0))
        self.assertEqual(counts("OK", "====\nNo tests ran\n\n"), (0, 1, 0))

    def test_exit_code_alone(self):
        self.assertEqual(counts("OK"), (1, 0, 0))
        self.assertEqual(counts("FAIL"), (0, 1, 0))
        self.assertEqual(counts("ERROR"), (0, 1, 0))
        self.assertEqual(counts("UNEXPECTEDPASS"), (0, 1, 0))
        self.assertEqual(counts("SKIP"), (0, 0, 1))

    def test_python_unittest(self):
        self.assertEqual(counts("OK", stderr="Ran 7 tests in 0.1s\n\nOK\n"), (7, 0, 0))
        self.assertEqual(counts("OK", stderr="Ran 7 tests in 0.1s\n\nOK (skipped=2)\n"), (5, 0, 2))
        text = "Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n"
        self.assertEqual(counts("FAIL", stderr=text), (3, 3, 1))

    def test_sums_over_programs(self):
        log = [json.dumps({"result": "OK"}), json.dumps({"result": "SKIP"}), json.dumps({"result": "FAIL"}),
               json.dumps({"result": "OK", "stdout": "All tests passed (9 assertions in 8 test cases)\n"})]
        self.assertEqual(run_tests.count(log), (9, 1, 1))


if __name__ == "__main__":
    unittest.main()
