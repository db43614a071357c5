#!/usr/bin/env python3
"""C++ in README.md and docs/parallel.md is what stands in examples/, which is built and run: docs cannot drift."""
import glob
import os
import re
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "docs/parallel.md"]
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.M | re.S)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def excerpts(text, lines):
    """All runs of `lines` lines of a text, each as if it began at the left edge."""
    rows = text.splitlines()
    return {textwrap.dedent("\n".join(rows[i:i + lines])) for i in range(len(rows) - lines + 1)}


class Snippets(unittest.TestCase):
    def setUp(self):
        self.examples = {os.path.basename(path): read(path) for path in glob.glob(os.path.join(ROOT, "examples", "*.cpp"))}

    def test_every_snippet_stands_in_an_example(self):
        shown = set()
        for page in PAGES:
            for block in BLOCK.findall(read(page)):
                wanted = block.rstrip("\n")
                homes = [name for name, text in self.examples.items() if wanted in excerpts(text, len(wanted.splitlines()))]
                self.assertTrue(homes, f"{page}: this stands in no example:\n{block}")
                shown.update(homes)
        self.assertEqual(shown, set(self.examples), "examples that no page shows")

    def test_the_smallest_program_is_as_short_as_promised(self):
        body = re.search(r"^int main\(.*?\{\n(.*?)^\}", self.examples["line.cpp"], re.M | re.S).group(1)
        self.assertLess(len(body.strip().splitlines()), 20)


if __name__ == "__main__":
    unittest.main()
