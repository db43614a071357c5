#!/usr/bin/env python3
"""The program over stages, as threads and under mpirun: the bits of one device, evaluation, prediction, memory, errors.

Usage: pipeline_test.py PROGRAM [names of tests]
"""
import json
import os
import subprocess
import sys
import unittest

import mpi_test
from mpi_test import RESNET, TIMEOUT, MpiTest, devices, lines_of
from process_test import png

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import LIMIT, environment, mpirun  # noqa: E402

WORDS = [*RESNET, "--micro-batch-size", "3", "--steps", "2", "--eval-every", "1"]
TWO = ["--stages", "2", "--cut", "layer3"]


class StagesTest(MpiTest):
    def convoy(self, processes, *words):
        command = [mpi_test.PROGRAM, *words]
        if processes > 1:
            return mpirun("-n", str(processes), *command)
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False)

    def out(self, processes, *words):
        done = self.convoy(processes, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Stages(StagesTest):
    def test_stages_have_the_bits_of_one_device(self):
        alone = self.losses(self.good(1, 1, *WORDS))
        self.assertEqual(len(alone), 4)
        text = self.good(1, 2, *WORDS, *TWO)
        self.assertEqual(self.losses(text), alone)
        run = lines_of(text, "run")[0]
        self.assertEqual((run["stages"], run["cut"], run["schedule"], run["replicas"], run["world"]),
                         ("2", "layer3", "1f1b", 1, 2))
        self.assertEqual([(link["from"], link["to"]) for link in run["links"]], [(1, 0), (0, 1)])
        self.assertTrue(all(link["bytes_per_s"] > 0 for link in run["links"]))
        self.assertEqual(self.losses(self.good(2, 1, *WORDS, *TWO, "--schedule", "zb-h1")), alone)

    def test_replicas_of_stages_on_ranks_of_workers(self):
        words = [*RESNET, "--bn", "sync", "--micro-batches", "2", "--steps", "2", *TWO]
        threads = self.losses(self.good(1, 4, *words))
        self.assertEqual(self.losses(self.good(2, 2, *words)), threads)

    def test_time_of_workers_is_told(self):
        text = self.good(2, 1, *WORDS, *TWO)
        bubble = [json.loads(line) for line in text.splitlines() if '"type":"bubble"' in line][0]
        self.assertEqual((bubble["steps"], [w["stages"] for w in bubble["workers"]]), (2, [[0], [1]]))
        for worker in bubble["workers"]:
            self.assertAlmostEqual(sum(worker["shares"].values()), 1, places=6)
            self.assertGreater(worker["seconds"]["forward"], 0)
            self.assertGreater(worker["predicted_peak_bytes"], 0.95 * worker["peak_bytes"])
            self.assertGreater(worker["predicted"]["forward"], 0)
            self.assertGreater(worker["peak_bytes"], 1e6)
        self.assertGreater(bubble["predicted_step_s"], 0)

    def test_a_schedule_from_a_file(self):
        table = ("F 0.0  SA 0.0  F 0.1  SA 0.1  F 0.2  SA 0.2  RG 0.0  I 0.0  W 0.0  RG 0.1  I 0.1  W 0.1  "
                 "RG 0.2  I 0.2  W 0.2  AR 0  ST 0\n"
                 "RA 1.0  F 1.0  I 1.0  SG 1.0  W 1.0  RA 1.1  F 1.1  I 1.1  SG 1.1  W 1.1  RA 1.2  F 1.2  "
                 "I 1.2  SG 1.2  W 1.2  AR 1  ST 1\n")
        path = self.path("table.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(table)
        words = [*RESNET, "--micro-batches", "3", "--steps", "1"]
        alone = self.losses(self.good(1, 1, *words))
        self.assertEqual(self.losses(self.good(1, 2, *words, *TWO, "--schedule", path)), alone)
        self.assertIn("3 micro-batches", self.bad(2, "usage: " + path, 1, 2, *words, *TWO, "--schedule", path,
                                                   "--micro-batches", "4"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(table.replace("SG 1.1", "SG 1.2"))
        self.assertIn("SG 1.1 of worker 1 is missing", self.bad(2, f"usage: {path}: ", 1, 2, *words, *TWO, "--schedule", path))
        # Both ranks find it; whoever is first says so.
        self.assertRegex(self.bad(2, "[rank ", 2, 1, *words, *TWO, "--schedule", path), rf"\[rank [01]\] usage: {path}: ")

    def test_labels_of_images_passed_over_are_left_out(self):
        for part in ("train", "val"):
            for name in "ab":
                os.makedirs(self.path("images", part, name))
                for i in range(6):
                    png(self.path("images", part, name, f"{name}{i}.png"), 32, lambda x, y, i=i: (x, y, 40 * i))
        for part, name in (("train", "b4"), ("train", "a1"), ("val", "a0")):
            with open(self.path("images", part, name[0], name + ".png"), "r+b") as file:
                file.truncate(60)
        words = ["--model", "resnet18", "--data", "folder:" + self.path("images"), "--image-size", "32", "--batch", "6",
                 "--lr", "0.001", "--threads", "1", "--bad-images", "skip", "--micro-batches", "2", "--bn", "frozen"]
        alone = self.losses(self.good(1, 1, *words))
        self.assertEqual(sum(line["images"] for line in alone if line["type"] == "step"), 10)
        done = self.train(2, 1, *words, *TWO)  # rank 1 reads labels alone
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses(done.stdout), alone)
        self.assertEqual(done.stderr.count("skipped 2 of 12"), 1, done.stderr)

    def test_layouts_that_do_not_fit_are_told(self):
        self.assertIn("take fewer --micro-batches or another --batch",
                      self.bad(2, "usage: batch norm ", 1, 2, *RESNET, *TWO, "--micro-batches", "8"))
        self.assertIn("there are 2 worker(s)", self.bad(2, "usage: --stages 3", 1, 2, *WORDS, "--stages", "3"))
        self.assertIn("has no layer nowhere", self.bad(2, "usage: ", 1, 2, *WORDS, "--stages", "2", "--cut", "nowhere"))
        self.assertIn("cannot be read", self.bad(2, "usage: --schedule ./none", 1, 2, *WORDS, *TWO,
                                                 "--schedule", "./none"))


class Trained(StagesTest):
    """What was trained is evaluated, used and trained on by any layout."""

    def setUp(self):
        super().setUp()
        self.run_folder = self.path("run")
        self.good(1, 2, *RESNET, "--steps", "1", *TWO, "--checkpoint", self.run_folder)

    def test_eval_and_predict(self):
        words = ["eval", "--checkpoint", self.run_folder, "--json", "--threads", "1", "--micro-batch-size", "3"]
        alone = self.out(1, *words)
        self.assertIn('"type":"eval"', alone)
        two = [*words, "--stages", "2", *TIMEOUT]
        self.assertEqual(self.out(1, *two, "--devices", "cpu:0,cpu:1"), alone)
        self.assertEqual(self.out(2, *two), alone)
        images = [self.path(f"{i}.png") for i in range(5)]
        for i, path in enumerate(images):
            png(path, 32, lambda x, y, i=i: (8 * x, 8 * y, 50 * i))
        words = ["predict", "--checkpoint", self.run_folder, "--json", "--logits", "--threads", "1", *images]
        alone = self.out(1, *words)
        self.assertEqual([json.loads(line)["image"] for line in alone.splitlines()], images)
        two = [*words, "--stages", "2", "--cut", "layer2", *TIMEOUT]
        self.assertEqual(self.out(1, *two, "--devices", devices(4)), alone)  # two replicas
        self.assertEqual(self.out(2, *two), alone)


class Memory(StagesTest):
    def test_a_network_too_big_for_one_device_trains_in_two_stages(self):
        words = ["--model", "resnet18", "--classes", "10", "--data", "synthetic:16", "--image-size", "32", "--batch", "8",
                 "--lr", "0.01", "--threads", "1", "--micro-batch-size", "4", "--steps", "2", "--device-memory", "110MiB"]
        self.assertIn("of the cap of 115343360 bytes", self.bad(7, "resource: ", 1, 1, *words))
        text = self.good(1, 2, *words, "--stages", "2")  # cut by what was measured
        self.assertEqual(len(lines_of(text, "step")), 2)
        self.assertRegex(lines_of(text, "run")[0]["cut"], "^layer[34]")
        refused = self.bad(7, "[rank 0] resource: ", 1, 2, *words, *TWO)  # cut by hand: before the first step
        self.assertRegex(refused, r"worker 1 needs \d+ bytes at [FIW] 1\.\d .*, its cap is 115343360")


if __name__ == "__main__":
    mpi_test.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
