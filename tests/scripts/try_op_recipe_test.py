"""try_op_recipe: which files a recipe names, and where lines are put. To follow it is a step of scripts/check."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "try_op_recipe")
LOADER = importlib.machinery.SourceFileLoader("try_op_recipe", os.path.normpath(SCRIPT))
recipe = importlib.util.module_from_spec(importlib.util.spec_from_loader("try_op_recipe", LOADER))
LOADER.exec_module(recipe)


class NamedFiles(unittest.TestCase):
    def test_x_stands_for_the_op(self):
        text = "`engine/ops/x.cpp` and `tests/engine/ops/x_test.cpp`, a line in `kernels/index.h`, `x`, `op_names`"
        self.assertEqual(recipe.named_files(text), {
            "engine/ops/row_scale.cpp", "tests/engine/ops/row_scale_test.cpp", "kernels/index.h"})

    def test_contributing_names_what_the_recipes_need(self):
        recipe.check_contributing()

    def test_a_file_too_many_or_too_few_is_said(self):
        with self.assertRaisesRegex(SystemExit, "does not name b/c.h; names without need d/e.h"):
            recipe.check_named("An op", {"a/b.h", "d/e.h"}, {"a/b.h", "b/c.h"})


class Insert(unittest.TestCase):
    def inserted(self, text, side, mark):
        with tempfile.TemporaryDirectory() as recipe.COPY:
            path = os.path.join(recipe.COPY, "file")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            recipe.insert("file", side, mark, "new")
            with open(path, encoding="utf-8") as file:
                return file.read()

    def test_after_and_before(self):
        self.assertEqual(self.inserted("a\nmark b\nc\n", "after", "mark"), "a\nmark b\nnew\nc\n")
        self.assertEqual(self.inserted("a\nmark b\nc\n", "before", "mark"), "a\nnew\nmark b\nc\n")

    def test_a_mark_that_is_not_there_once(self):
        for text in ("a\n", "mark\nmark\n"):
            with self.assertRaisesRegex(SystemExit, "lines start with 'mark', 1 expected"):
                self.inserted(text, "after", "mark")


if __name__ == "__main__":
    unittest.main()
