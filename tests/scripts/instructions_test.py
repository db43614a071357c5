"""instructions.py: what it reads from callgrind, and what it makes of counts."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import instructions  # noqa: E402

CALLGRIND = """\
positions: line
events: Ir
summary: 1111

ob=(1) /lib/libc.so.6
fl=(1) a.c
fn=(1) once
68 9
+8 1
cob=(2) /build/convoy
cfn=(2) main
calls=1 -86
* 1000
-2 40

ob=(2)
fn=(2)
10 50
cob=(1)
cfn=(1)
calls=2 1
+1 500

ob=(3) ???
fn=(3) 0x1000
0 11
"""
VERSIONS = {"compiler": "gcc 12.2.0", "onednn": "3.2.0"}


def baseline(**runs):
    return {"versions": VERSIONS, "runs": runs}


def both(value):
    return {"all": value, "own": value}


class SelfCounts(unittest.TestCase):
    def test_each_object_has_its_own_instructions_without_those_of_what_it_calls(self):
        counts = instructions.self_counts(CALLGRIND)
        self.assertEqual(counts, {"/lib/libc.so.6": 50, "/build/convoy": 50, "???": 11})
        self.assertEqual(instructions.parts_of(counts, "/other/convoy"), {"all": 111, "own": 50})


class Compare(unittest.TestCase):
    def check(self, kept, now, grown, better, loose=False):
        lines, more, less = instructions.compare(baseline(a={**both(1000), **kept}), {"a": {**both(1000), **now}}, loose)
        self.assertEqual(len(lines), 3)
        self.assertEqual((len(more), len(less)), (grown, better), (more, less))

    def test_growth_within_the_tolerance_is_none(self):
        self.check({}, both(1030), 0, 0)

    def test_growth_beyond_the_tolerance_fails_part_by_part(self):
        self.check({}, {"own": 1031}, 1, 0)
        self.check({}, both(1031), 2, 0)

    def test_a_run_may_have_a_tolerance_of_its_own(self):
        self.check({"tolerance": 0.1}, both(1100), 0, 0)
        self.check({"tolerance": 0.1}, both(1101), 2, 0)

    def test_other_versions_allow_more(self):
        self.check({}, both(1250), 0, 0, loose=True)
        self.check({}, both(1251), 2, 0, loose=True)

    def test_clearly_less_is_told(self):
        self.check({}, {"all": 969}, 0, 1)
        self.check({}, {"all": 975}, 0, 0)

    def test_a_run_without_a_baseline_fails(self):
        _, grown, _ = instructions.compare(baseline(), {"a": both(1)})
        self.assertEqual(grown, ["a has no baseline"])


class Report(unittest.TestCase):
    def report(self, now, here):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = instructions.report(baseline(a=both(1000)), {"a": both(now)}, here)
        return code, out.getvalue()

    def test_the_same_versions(self):
        code, text = self.report(1000, VERSIONS)
        self.assertEqual(code, 0)
        self.assertNotIn("other versions", text)
        self.assertNotIn("--write", text)

    def test_other_versions_are_named(self):
        code, text = self.report(1200, {**VERSIONS, "compiler": "clang 14.0.6"})
        self.assertEqual(code, 0)
        self.assertIn("compiler is clang 14.0.6, the baseline's is gcc 12.2.0", text)

    def test_growth_is_named_with_the_way_to_renew(self):
        code, text = self.report(1200, VERSIONS)
        self.assertEqual(code, 1)
        self.assertIn("a (all) by 20.0 %", text)
        self.assertIn("--write", text)


class Write(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "kept.json")

    def test_counts_tolerances_and_versions_come_back(self):
        kept = baseline(help={**both(5), "tolerance": 0.1})
        instructions.write(self.path, kept, {name: both(7) for name in instructions.RUNS}, VERSIONS)
        again = instructions.load(self.path)
        self.assertEqual(again["versions"], VERSIONS)
        self.assertEqual(again["runs"]["help"], {**both(7), "tolerance": 0.1})
        self.assertEqual(again["runs"]["train"]["tolerance"], instructions.TOLERANCE)

    def test_some_runs_alone_are_renewed_with_the_kept_versions_only(self):
        kept = baseline(**{name: both(5) for name in instructions.RUNS})
        instructions.write(self.path, kept, {"plan": both(6)}, VERSIONS)
        self.assertEqual(instructions.load(self.path)["runs"]["plan"]["all"], 6)
        self.assertEqual(instructions.load(self.path)["runs"]["help"]["all"], 5)
        with self.assertRaises(SystemExit):
            instructions.write(self.path, kept, {"plan": both(6)}, {**VERSIONS, "onednn": "3.3.0"})

    def test_the_kept_baseline_has_every_run(self):
        with open(instructions.BASELINE, encoding="utf-8") as file:
            self.assertEqual(list(json.load(file)["runs"]), list(instructions.RUNS))


if __name__ == "__main__":
    unittest.main()
