#!/usr/bin/env python3
"""The report as a reader sees it: the file alone, and in a browser (Chromium without a window).

Usage: report_test.py PROGRAM [names of tests]        CONVOY_CHROMIUM names another browser
"""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import report_data as data

PROGRAM = ""
LIMIT = 60  # seconds
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EVIL = '<img src=x onerror="document.title=1">&amp;'


def browser():
    """The path of Chromium; without it the tests fail and say what to do."""
    found = os.environ.get("CONVOY_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        raise AssertionError("Chromium is missing, so reports cannot be opened: apt-get install chromium (scripts/setup does it)")
    return found


class Page(html.parser.HTMLParser):
    """Elements with their attributes and the text directly inside them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "second": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in ("meta", "br", "img", "link", "input"):
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", "second": "", **dict(attributes)})

    def handle_endtag(self, tag):
        while self.open and self.open.pop()["tag"] != tag:
            pass

    def handle_data(self, text):
        if not self.open:
            return
        if self.open[-1]["tag"] == "i":  # the softer line of a cell belongs to the cell
            self.open[-2]["second"] += text
        else:
            self.open[-1]["text"] += text

    def all(self, tag, style=None, **attributes):
        def fits(element):
            return element["tag"] == tag and (style is None or style in (element.get("class") or "").split()) and all(
                element.get(name.replace("_", "-")) == value for name, value in attributes.items())

        return [element for element in self.elements if fits(element)]


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, lines):
        return data.write(self.path(name), lines)

    def convoy(self, *words):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CONVOY_")}
        return subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, timeout=LIMIT, check=False, env=kept, text=True)

    def report(self, *words):
        done = self.convoy("report", *words, "-o", "out.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("out.html"), encoding="utf-8") as file:
            return file.read()

    def in_browser(self, name="out.html"):
        """The document as the browser has it after loading, and what it wrote to its console."""
        done = subprocess.run(
            [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--user-data-dir=" + self.path("profile"), "--enable-logging=stderr", "--dump-dom", "file://" + self.path(name)],
            capture_output=True, timeout=LIMIT, check=False, text=True)
        self.assertIn("</html>", done.stdout, done.stderr)
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    def assert_shares(self, page, workers):
        """Each worker's cells are its shares, in percent with two decimals, and sum to 100 %."""
        for worker in workers:
            cells = {cell["data-state"]: cell for cell in page.all("td", data_worker=str(worker["worker"])) if "data-state" in cell}
            planned = sum(worker["predicted"].values())
            for state in data.STATES:
                if state not in cells:
                    self.assertFalse(any(other["seconds"][state] or other["predicted"][state] for other in workers), state)
                    continue
                self.assertEqual(cells[state]["text"], f"{100 * worker['shares'][state]:.2f} %")
                self.assertEqual(cells[state]["second"], f"{100 * worker['predicted'][state] / planned:.2f} %")
            self.assertEqual(cells["sum"]["text"], "100.00 %")
            bubble = sum(worker["shares"][state] for state in ("starved", "transfer", "slot_full"))
            self.assertEqual(cells["bubble"]["text"], f"{100 * bubble:.2f} %")

    def test_browser_shows_each_box_and_the_numbers_of_the_metrics(self):
        stages, replicas, micro_batches = 2, 2, 5
        lines = data.metrics(stages, replicas, micro_batches)
        self.report(self.write("run.jsonl", lines))
        document, console = self.in_browser()
        self.assertEqual(console, [])
        page = Page(document)
        boxes = [box for box in page.all("rect", "box") if "data-kind" in box]
        for kind in ("F", "I", "W"):
            for worker in range(stages * replicas):
                mine = [box["data-micro-batch"] for box in boxes if box["data-kind"] == kind and box["data-worker"] == str(worker)]
                self.assertEqual(mine, [str(k) for k in range(micro_batches)], (kind, worker))
        planned = [box for box in page.all("rect", "plan") if box.get("data-kind") in ("F", "I", "W")]
        self.assertEqual(len(planned), stages * replicas * micro_batches * 3)
        bubble = next(line for line in lines if line["type"] == "bubble")
        self.assert_shares(page, bubble["workers"])
        for worker in bubble["workers"]:
            for kind, key in (("measured", "peak_bytes"), ("predicted", "predicted_peak_bytes")):
                (cell,) = page.all("td", data_worker=str(worker["worker"]), data_bytes=kind)
                self.assertEqual(cell["text"], f"{worker[key]:.0f}")

    def test_names_stay_text(self):
        name = EVIL.replace("/", "") + ".jsonl"
        lines = data.metrics(model=EVIL)
        self.report(self.write(name, lines), self.write("other.jsonl", data.metrics()))
        document, console = self.in_browser()
        self.assertEqual(console, [])
        page = Page(document)
        self.assertEqual(page.all("img"), [])
        self.assertTrue(any(element["text"] == EVIL for element in page.all("td")))
        self.assertTrue(any(element["text"].endswith(name) for element in page.all("h3")))

    def test_nothing_is_loaded_and_nothing_runs(self):
        text = self.report(self.write("run.jsonl", data.metrics()), self.write("split.jsonl", data.split_rows()))
        self.assertLess(len(text.encode()), 2_000_000)
        self.assertIn("default-src 'none'", text)
        for pattern in (r"<script", r"https?://", r"\bsrc=", r"<link", r"@import", r"url\("):
            self.assertIsNone(re.search(pattern, text), pattern)
        page = Page(text)
        for svg in page.all("svg"):
            self.assertIn("aria-labelledby", svg)
        identifiers = [element["id"] for element in page.elements if "id" in element]
        self.assertEqual(len(identifiers), len(set(identifiers)))

    def test_sweep_has_a_point_and_a_bar_for_each_row_and_a_file_of_its_own(self):
        rows = data.split_rows()
        page = Page(self.report(self.write("split.jsonl", rows)))
        shown = [cell["text"] for cell in page.elements if cell["tag"] == "td" and "data-rate" in cell]
        self.assertEqual(shown, [f"{row['images_per_s']:.4g}" for row in rows if "mode" in row])
        self.assertTrue(any("pipelining is fastest: holds" in text["text"] for text in page.all("p")))
        drawing = xml.etree.ElementTree.parse(self.path("out.svg")).getroot()
        space = "{http://www.w3.org/2000/svg}"
        swept = 2 * len(data.SPLITS)  # single and pipeline
        points = [circle.get("class").startswith("repeat") for circle in drawing.findall(space + "circle")]
        self.assertEqual((points.count(False), points.count(True)), (swept, 3 * swept))
        self.assertEqual(sum("error" in line.get("class") for line in drawing.findall(space + "line")), 3 * swept)
        self.assertEqual(sum("band" in rect.get("class") for rect in drawing.findall(space + "rect")), 3)

    def test_parts_without_data_are_named(self):
        alone = [line for line in data.metrics(stages=1) if line["type"] not in ("bubble", "spans")]
        text = self.report(self.write("run.jsonl", alone))
        self.assertIn("Timeline of a step (no `spans` line in the metrics)", text)
        self.assertIn("Split sweep (no lines of `bench split --json`)", text)
        self.assertNotIn("Curves (", text)
        text = self.report(self.write("split.jsonl", data.split_rows()))
        self.assertIn("Curves (no `step` lines)", text)

    def test_a_big_run_stays_small(self):
        steps = list(data.step_lines(20000))
        self.report(self.write("run.jsonl", [data.run_line(16, 4), *steps, data.spans_line(16, 4, 64), data.bubble_line(16, 4)]))
        self.assertLess(os.path.getsize(self.path("out.html")), 2_000_000)
        with open(self.path("out.html"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"The first \d+ of 64 workers are shown")

    def test_a_folder_is_a_run_and_its_report_stands_in_it(self):
        os.mkdir(self.path("run"))
        self.write("run/metrics.jsonl", data.metrics())
        self.write("run/split.jsonl", data.split_rows())
        done = self.convoy("report", "run", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = json.loads(done.stdout)
        self.assertEqual(line["files"], ["run/report.html", "run/report.svg"])
        self.assertEqual(line["runs"][0]["top1"], 0.88)
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["metrics.jsonl", "report.html", "report.svg", "split.jsonl"])

    def test_training_writes_its_report(self):
        toy = ["train", "--model", "toy", "--data", "synthetic:60", "--batch", "8", "--lr", "0.05"]
        done = self.convoy(*toy, "--log", "run.jsonl", "--report", "new/own.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("new", "own.html"), encoding="utf-8") as file:
            own = file.read()
        self.assertEqual(own, self.report("run.jsonl"))
        done = self.convoy(*toy, "--report", "alone.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("alone.html"), encoding="utf-8") as file:
            page = Page(file.read())
        self.assertTrue(any(cell["text"] == "toy" for cell in page.all("td")))
        self.assertTrue(page.all("svg"))
        os.mkdir(self.path("folder"))
        for flag in ("--report", "--trace"):
            done = self.convoy(*toy, flag, "folder")
            self.assertEqual((done.returncode, done.stderr), (2, f"convoy: error: usage: {flag} folder: this is a folder, expected a file\n"))

    def test_a_pipeline_tells_of_its_workers(self):
        done = self.convoy("train", "--model", "toy", "--data", "synthetic:60", "--batch", "8", "--lr", "0.05", "--micro-batches", "4",
                           "--stages", "2", "--devices", "cpu:0,cpu:1", "--comm-timeout", "40",
                           "--log", "run.jsonl", "--report", "out.html", "--trace", "trace.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        bubbles = [line for line in lines if line["type"] == "bubble"]
        self.assertEqual(sum(line["steps"] for line in bubbles), 8)
        for worker in (worker for line in bubbles for worker in line["workers"]):
            self.assertAlmostEqual(sum(worker["shares"].values()), 1, delta=1e-9)
        with open(self.path("out.html"), encoding="utf-8") as file:
            page = Page(file.read())
        self.assert_shares(page, bubbles[-1]["workers"] if len(bubbles) == 1 else [])
        boxes = [(box["data-worker"], box["data-micro-batch"]) for box in page.all("rect", "box") if box.get("data-kind") == "F"]
        self.assertEqual(sorted(boxes), [(worker, str(k)) for worker in "01" for k in range(4)])
        with open(self.path("trace.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        ends = {}
        for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
            track = (event["pid"], event["tid"])
            self.assertGreaterEqual(event["ts"] + 1e-6, ends.get(track, 0), event)
            ends[track] = event["ts"] + event["dur"]
        self.assertEqual({pid for pid, _ in ends}, {1, 2})

    def test_odd_files(self):
        lines = data.metrics()
        with open(self.write("cut.jsonl", lines), "a", encoding="utf-8") as file:
            file.write('{"type":"step","st')  # a run that is still writing
        self.report("cut.jsonl")
        self.write("gaps.jsonl", [{"type": "run"}, {"type": "step", "loss": None}, {"type": "eval", "top1": "x"},
                                  {"type": "bubble", "workers": [{"seconds": 3}, 7]}, {"type": "spans", "workers": [{"measured": [[1]]}]},
                                  {"type": "spans", "workers": [3]}, {"type": "end"}, {"type": "new"}, {"bench": "split", "mode": "pipeline"}])
        self.report("gaps.jsonl")
        for name, text, said in (("bad", "{}\nno json\n{}\n", "bad: line 2 is no JSON object: no json"),
                                 ("other", '{"a":1}\n', "other: no line is one of a run (run, step) or of bench split")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
            done = self.convoy("report", name)
            self.assertEqual((done.returncode, done.stderr), (3, f"convoy: error: data: {said}\n"))
        self.assertEqual(self.convoy("report", "absent").returncode, 3)
        self.assertEqual(self.convoy("report").returncode, 2)
        os.mkdir(self.path("folder"))
        self.assertEqual(self.convoy("report", "folder").returncode, 3)
        self.assertEqual(self.convoy("report", "cut.jsonl", "-o", "folder").returncode, 2)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
