#!/usr/bin/env python3
"""The runner of reference files fails on every folder that it cannot use, and passes on new cases that are right.

Usage: reference_folder_test.py RUNNER SOURCE_FOLDER
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER, SOURCE = "", ""


def cases(name):
    return json.loads((pathlib.Path(SOURCE) / name).read_text())


def op(name):
    return copy.deepcopy(next(case for case in cases("ops.json") if case["op"] == name))


class Folder(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content))
            return self.run_in(folder)

    def run_in(self, folder):
        environment = {**os.environ, "CONVOY_REFERENCE_DIR": str(folder)}
        return subprocess.run([RUNNER, "*ref:0*"], env=environment, capture_output=True, text=True, timeout=120)

    def assert_passes(self, files):
        done = self.run_on(files)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def assert_fails(self, files, text):
        done = self.run_on(files)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(text, done.stdout)

    def test_cases_are_told_by_their_keys(self):
        text = self.assert_passes({"any name.json": [op("relu"), cases("small.json")[0]], "below/more.json": [op("linear")]})
        for word in ("relu", "toy", "linear"):
            self.assertIn(word, text)

    def test_notes_and_scripts_are_passed_over(self):
        self.assert_passes({"README.md": "text", "make.py": "pass", ".hidden": "", "a.json": [op("relu")]})

    def test_a_number_or_a_pair(self):
        case = op("conv2d")
        for key in ("stride", "padding"):
            case[key] = [case[key], case[key]]
        self.assert_passes({"a.json": [case]})

    def test_no_folder(self):
        self.assertEqual(self.run_in("/nowhere/at/all").returncode, 1)

    def test_empty_folder(self):
        self.assert_fails({}, "no reference files")

    def test_only_notes(self):
        self.assert_fails({"README.md": "text"}, "no reference files")

    def test_one_bad_file_among_good_ones(self):
        good = {"a.json": [op("relu")]}
        for content, text in (
            ("", "parse error"),
            ("[", "parse error"),
            ("[NaN]", "parse error"),
            ("[]", "not a list of cases"),
            ("{}", "not a list of cases"),
            ("[3]", "not an object"),
            ("[{}]", "neither 'op' nor 'model'"),
        ):
            with self.subTest(content):
                self.assert_fails({**good, "b.json": content}, text)
        self.assert_fails({**good, "b.npz": "PK"}, "not a .json file")

    def test_unknown_op_and_model(self):
        self.assert_fails({"a.json": [{**op("relu"), "op": "gelu"}]}, "the op 'gelu' is not known")
        self.assert_fails({"a.json": [{**cases("small.json")[0], "model": "vgg"}]}, "'vgg' is not known")

    def test_unknown_and_missing_keys(self):
        self.assert_fails({"a.json": [{**op("max_pool2d"), "dilation": 2}]}, "'dilation' is not known")
        self.assert_fails({"a.json": [{**cases("small.json")[0], "momentum": 0.9}]}, "'momentum' is not known")
        for key in ("key", "w", "y_shape", "y", "grads"):
            case = op("conv2d")
            del case[key]
            with self.subTest(key):
                self.assert_fails({"a.json": [case]}, "")
        case = op("conv2d")
        del case["grads"]["w"]
        self.assert_fails({"a.json": [case]}, "")

    def test_wrong_values(self):
        for part in ("y", "grads", "running_var"):
            case = op("batch_norm")
            digest = case["grads"]["b"] if part == "grads" else case[part]
            digest["projection"] += 1e-6 * digest["norm"]
            with self.subTest(part):
                self.assert_fails({"a.json": [case]}, "projection is")
        case = cases("small.json")[1]
        case["losses"][-1] *= 1 + 1e-7
        self.assert_fails({"a.json": [case]}, "step 10: loss")

    def test_wrong_key(self):
        self.assert_fails({"a.json": [{**op("relu"), "key": "another"}]}, "projection is")


if __name__ == "__main__":
    RUNNER, SOURCE = sys.argv[1], sys.argv[2]
    unittest.main(argv=sys.argv[:1])
