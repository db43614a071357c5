#!/usr/bin/env python3
"""`convoy plan` as a process: its lines of JSON, its text, and what it refuses.

Usage: plan_test.py PROGRAM CLUSTER.toml [names of tests]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = CLUSTER = ""
LIMIT = 240  # seconds, of each run
SMALL = ["--model", "resnet18", "--image-size", "32", "--batch", "8", "--threads", "1"]


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CONVOY_") and not k.endswith("_SIZE")}
    kept.pop("SLURM_NTASKS", None)
    return kept


def run(*flags):
    return subprocess.run([PROGRAM, "plan", *flags], capture_output=True, text=True, timeout=LIMIT,
                          env=environment(), check=False)


def plan(*flags):
    """The first line of --json, candidates, timed ones, and the last line."""
    done = run(*flags, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    of_type = {name: [line for line in lines if line["type"] == name] for name in ("candidate", "timed")}
    return lines[0], of_type["candidate"], of_type["timed"], lines[-1]


class Measured(unittest.TestCase):
    def check_never_worse(self, timed, best):
        self.assertIn("data-parallel", {t["layout"] for t in timed})
        self.assertTrue(all(len(t["measured_s"]) >= 3 for t in timed))
        safe = min((t for t in timed if t["stages"] == 1), key=lambda t: t["median_s"])
        pipelines = [t for t in timed if t["stages"] > 1]
        fastest = min(pipelines, key=lambda t: t["median_s"]) if pipelines else safe
        gain = safe["median_s"] - fastest["median_s"]
        wanted = fastest if gain > safe["spread_s"] + fastest["spread_s"] else safe
        self.assertEqual((best["layout"], best["schedule"]), (wanted["layout"], wanted["schedule"]))
        self.assertEqual("within the spread" in best["reason"], wanted is safe and gain > 0, best["reason"])

    def test_two_devices(self):
        head, candidates, timed, best = plan("--devices", "cpu:0,cpu:1", *SMALL)
        self.assertEqual((head["type"], head["workers"], head["batch"]), ("plan", 2, 8))
        self.assertGreater(head["link_bytes_per_s"], 0)
        self.assertEqual({c["layout"] for c in candidates}, {"single", "data-parallel", "pipeline"})
        self.assertEqual({c["schedule"] for c in candidates if c["layout"] == "pipeline"},
                         {"fill-drain", "1f1b", "zb-h1", "interleaved"})
        for c in candidates:
            self.assertIsNone(c["dropped"])
            self.assertGreater(c["seconds"], 0)
            self.assertAlmostEqual(c["images_per_s"] * c["seconds"], 8, 6)
            self.assertEqual(len(c["cut"]), c["stages"] - 1)
            self.assertEqual(len(c["memory_bytes"]), c["stages"] // c["stages_per_worker"])
            self.assertGreaterEqual(c["micro_batch_size"], 2)  # one value a channel is refused
        times = [c["seconds"] for c in candidates]
        self.assertEqual(times, sorted(times))
        self.assertEqual(best["type"], "recommendation")
        self.assertGreater(len(best["drawing"]), 0)
        self.check_never_worse(timed, best)

    def test_given_layout(self):
        _, candidates, _, best = plan("--devices", "cpu:0,cpu:1", "--stages", "2", "--cut", "layer3", "--schedule",
                                   "zb-h1", "--micro-batch-size", "4", *SMALL)
        self.assertEqual(len(candidates), 1)
        self.assertEqual((best["schedule"], best["cut"], best["micro_batches"]), ("zb-h1", ["layer3"], 2))
        self.assertIn("--stages 2 --schedule zb-h1 --cut layer3 --micro-batch-size 4", best["flags"])

    def test_one_device_and_rows(self):
        for model in ("toy", "line"):
            _, candidates, _, best = plan("--model", model, "--batch", "8", "--threads", "1")
            self.assertEqual({c["layout"] for c in candidates}, {"single"})
            self.assertEqual(best["layout"], "single")

    def test_too_little_memory(self):
        _, candidates, _, best = plan("--devices", "cpu:0,cpu:1", "--device-memory", "110MiB", *SMALL)
        single = [c for c in candidates if c["layout"] == "single"]
        self.assertTrue(all("its cap is 115343360" in c["dropped"] for c in single), single)
        self.assertEqual(best["layout"], "pipeline")
        self.assertLessEqual(max(best["memory_bytes"]), 115343360)


class Trained(unittest.TestCase):
    def train(self, *flags):
        command = [PROGRAM, "train", "--model", "resnet18", "--data", "synthetic:16", "--image-size", "32", "--batch",
                   "8", "--steps", "2", "--devices", "cpu:0,cpu:1", "--threads", "1", "--json", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        planned = ("--stages", "auto") in zip(flags, flags[1:])
        for note in ("measures layers and links of 2 workers\n", "runs the best of ", "takes "):
            self.assertEqual("convoy: plan: " + note in done.stderr, planned, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_the_planned_layout_is_told_and_trains_as_given_by_hand(self):
        run_line, *_, planned = self.train("--stages", "auto", "--micro-batch-size", "4")
        self.assertNotEqual(run_line["stages"], "auto")
        keys = ("replicas", "stages", "cut", "schedule", "stages-per-worker", "micro-batch-size")
        flags = [text for key in keys for text in ("--" + key, str(run_line[key]))]
        again, *_, by_hand = self.train(*flags)
        self.assertEqual([again[key] for key in keys], [run_line[key] for key in keys])
        self.assertEqual(planned["weights_hash"], by_hand["weights_hash"])

    def computed(self, *flags):
        """Instructions of each worker in the order in which they ran."""
        lines = self.train(*flags, "--trace", os.devnull)
        spans = next(line for line in lines if line["type"] == "spans")
        states = ("forward", "backward_input", "backward_weight", "optimizer")
        return [[span[1] for span in worker["measured"] if span[0] in states] for worker in spans["workers"]]

    def test_a_saved_table_trains_in_the_order_of_its_schedule(self):
        flags = ["--stages", "2", "--cut", "layer3", "--micro-batch-size", "2"]
        *_, best = plan("--devices", "cpu:0,cpu:1", "--schedule", "zb-h1", *flags, *SMALL)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(best["table"])
            by_table = self.computed(*flags, "--schedule", path)
        self.assertEqual(by_table, self.computed(*flags, "--schedule", "zb-h1"))
        self.assertNotEqual(by_table, self.computed(*flags, "--schedule", "fill-drain"))


class Described(unittest.TestCase):
    def test_thousands_of_workers(self):
        head, candidates, timed, best = plan("--cluster", CLUSTER, "--batch", "32768")
        self.assertEqual((head["workers"], timed), (4096, []))
        self.assertTrue(all(c["replicas"] * c["stages"] // c["stages_per_worker"] == 4096
                            for c in candidates if c["layout"] != "single"))
        self.assertTrue({"data-parallel", "both"} <= {c["layout"] for c in candidates})
        fastest = min(c["seconds"] for c in candidates if c["dropped"] is None)
        self.assertLessEqual(best["seconds"], fastest / 0.97)
        self.assertLessEqual(max(best["memory_bytes"]), 80 * 2**30)
        single = next(c for c in candidates if c["layout"] == "single")
        self.assertIn("its cap is 85899345920", single["dropped"])
        # More warm-up than 1f1b has can be told by a table alone.
        self.assertTrue(best["warm_up"])
        self.assertIn("--schedule table.txt", best["flags"])
        self.assertEqual(len([line for line in best["table"].splitlines() if not line.startswith("#")]), best["stages"])

    def test_text(self):
        flags = ["--cluster", CLUSTER, "--batch", "32768", "--stages", "4", "--micro-batch-size", "8"]
        done = run(*flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not measured", done.stdout)
        self.assertIn("W3 ", done.stdout)
        self.assertIn("recommended: both", done.stdout)
        *_, best = plan(*flags)
        self.assertIn(f"FILE:\n{best['table']}", done.stdout)
        done = run("--cluster", CLUSTER, "--batch", "32768")
        self.assertIn("dropped: single, 32768 images x1: worker 0 needs 3256.03 GB at I 0.0", done.stdout)
        self.assertIn("`table` of --json", done.stdout)


class Refused(unittest.TestCase):
    def check(self, flags, *parts):
        done = run(*flags)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_settings(self):
        self.check(["--cluster", "/nowhere.toml"], "--cluster: cannot read /nowhere.toml")
        self.check(["--stages", "3", "--devices", "cpu:0,cpu:1"], "--stages 3", "2 worker(s)")
        self.check(["--cut", "layer3"], "--cut layer3", "--stages")
        self.check(["--stages", "2", "--schedule", "my.txt"], "--schedule my.txt: planning", "convoy train --stages S")
        self.check(["--cluster", CLUSTER, "--stages", "2", "--cut", "layer9"], "resnet50 has no layer layer9")
        self.check(["--cluster", CLUSTER, "--stages", "2", "--cut", "bn1"], "does not begin a node")


if __name__ == "__main__":
    PROGRAM, CLUSTER = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
