#!/usr/bin/env python3
"""The program in several processes under mpirun: equal to threads, shares, resume, signals, errors.

Usage: mpi_test.py PROGRAM [names of tests]
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "comm"))
from mpirun import LIMIT, environment, mpirun  # noqa: E402

PROGRAM = ""
TIMEOUT = ["--comm-timeout", "30"]
TOY = ["--model", "toy", "--data", "synthetic:60", "--batch", "8", "--lr", "0.05"]
RESNET = ["--model", "resnet18", "--data", "synthetic:40", "--limit", "16", "--image-size", "32", "--batch", "8",
          "--lr", "0.01", "--threads", "1"]


def devices(count):
    return ",".join(f"cpu:{i}" for i in range(count))


def lines_of(text, *types):
    """The metric lines of these types, without rates and times."""
    found = [json.loads(line) for line in text.splitlines() if line]
    for line in found:
        line.pop("images_per_s", None)
        line.pop("seconds", None)
    return [line for line in found if line["type"] in types]


class MpiTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def train(self, processes, workers, *words):
        """What `train` does in so many processes of so many workers each."""
        command = [PROGRAM, "train", "--json", *TIMEOUT, "--devices", devices(workers), *words]
        if processes > 1:
            return mpirun("-n", str(processes), *command)
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False)

    def good(self, *arguments):
        done = self.train(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bad(self, code, start, *arguments):
        """The one line of the program."""
        done = self.train(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("convoy: error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertTrue(errors[0].startswith("convoy: error: " + start), errors[0])
        return errors[0]

    def losses(self, text):
        return lines_of(text, "step", "eval", "end")


class Equal(MpiTest):
    """Processes, threads and mixtures compute the same bits; weights are compared by the program itself."""

    def same_for(self, layouts, *words):
        results = [self.losses(self.good(*layout, *words)) for layout in layouts]
        self.assertGreater(len(results[0]), 2)
        for layout, result in zip(layouts[1:], results[1:]):
            self.assertEqual(result, results[0], layout)
        return results[0]

    def test_rows(self):
        self.same_for([(1, 2), (2, 1)], *TOY, "--epochs", "2")
        self.same_for([(1, 3), (3, 1)], "--model", "line", "--data", "synthetic:50", "--batch", "7", "--lr", "0.01")
        self.same_for([(1, 4), (4, 1), (2, 2)], *TOY, "--clip-grad", "0.5", "--accumulate", "2")

    def test_resnet18(self):
        self.same_for([(1, 2), (2, 1)], *RESNET, "--bn", "sync", "--eval-every", "1")
        self.same_for([(1, 4), (2, 2)], *RESNET, "--steps", "2")

    def test_resnet50(self):
        words = [*RESNET, "--model", "resnet50", "--batch", "7", "--bn", "sync", "--steps", "2"]
        self.same_for([(1, 3), (3, 1)], *words)

    def test_a_short_last_batch_and_fewer_images_than_replicas(self):
        text = self.good(4, 1, *TOY, "--data", "synthetic:400", "--limit", "97", "--replicas", "4", "--batch", "32")
        self.assertEqual([line["images"] for line in lines_of(text, "step")], [32, 32, 32, 1])
        text = self.good(4, 1, *TOY, "--limit", "3", "--replicas", "4", "--batch", "32")
        self.assertEqual([line["images"] for line in lines_of(text, "step")], [3])

    def test_the_run_line_says_what_runs_where(self):
        run = lines_of(self.good(2, 2, *TOY, "--bn", "micro", "--threads", "1", "--steps", "1"), "run")[0]
        self.assertEqual((run["replicas"], run["world"], run["backend"]), (4, 4, "mpi"))
        self.assertEqual(run["worker_devices"], ["cpu:0", "cpu:1", "cpu:0", "cpu:1"])
        self.assertEqual(run["worker_threads"], [1, 1, 1, 1])
        self.assertEqual(len(run["hosts"]), 2)
        self.assertEqual(run["running_statistics"], "replica 0")


class Resume(MpiTest):
    IMAGES = [*TOY, "--data", "synthetic:300", "--limit", "60"]

    def checkpoint_files(self, folder):
        found = {}
        for name in ("model.safetensors", "optimizer.safetensors"):
            with open(self.path(folder, "last", name), "rb") as file:
                found[name] = file.read()
        return found

    def test_as_if_it_had_not_stopped(self):
        words = [*self.IMAGES, "--epochs", "3", "--eval-every", "1"]
        self.good(2, 1, *words, "--checkpoint", self.path("whole"), "--log", self.path("whole.jsonl"))
        cut = [*words, "--checkpoint", self.path("cut"), "--log", self.path("cut.jsonl")]
        self.good(2, 1, *cut, "--steps", "5")
        self.good(2, 1, *cut, "--resume")
        logs = []
        for name in ("whole.jsonl", "cut.jsonl"):
            with open(self.path(name), encoding="utf-8") as file:
                logs.append(self.losses(file.read()))
        self.assertEqual(logs[1], logs[0])
        self.assertEqual(self.checkpoint_files("cut"), self.checkpoint_files("whole"))

    def test_with_other_numbers_of_replicas(self):
        words = [*self.IMAGES, "--epochs", "2"]
        self.good(2, 1, *words, "--steps", "12", "--checkpoint", self.path("half"))  # 1.5 epochs
        for layout in ((1, 1), (3, 1), (2, 2)):
            copy = self.path(f"of-{layout[0]}-{layout[1]}")
            shutil.copytree(self.path("half"), copy, symlinks=True)
            done = self.train(*layout, *words, "--resume", "--checkpoint", copy, "--batch", "10")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--batch was 8, is 10 now", done.stderr)
            self.assertEqual(sum(line["images"] for line in lines_of(done.stdout, "step")), 28)
            self.assertEqual(len(lines_of(done.stdout, "end")), 1)


class Output(MpiTest):
    def test_a_file_gets_plain_lines(self):
        text = mpirun("-n", "2", PROGRAM, "train", *TIMEOUT, *TOY).stdout
        self.assertIn("weights hash", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\r", text.replace("\r\n", "\n"))

    def test_a_rank_that_is_stopped_early_leaves_no_line(self):
        wait = f"[ $OMPI_COMM_WORLD_RANK = 0 ] && sleep 1 && exit 4; exec {PROGRAM} train {' '.join(TOY)}"
        done = mpirun("-n", "2", "sh", "-c", wait)
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)


class Failures(MpiTest):
    def test_a_signal_to_one_rank_stops_all_at_one_step(self):
        words = [*TOY, "--data", "synthetic:40000", "--epochs", "1000", "--eval-every", "1000"]
        run = [PROGRAM, "train", *words, *TIMEOUT, "--checkpoint", self.path("run"), "--log", self.path("log.jsonl")]
        script = "echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec \"$@\""
        command = ["mpirun", "--bind-to", "none", "-n", "3", "sh", "-c", script, "sh", *run]
        with subprocess.Popen(command, cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            try:
                self.wait_for_steps(20)
                with open(self.path("pid.1"), encoding="utf-8") as file:
                    os.kill(int(file.read()), signal.SIGTERM)
                stderr = process.communicate(timeout=LIMIT)[1]
            finally:
                process.terminate()
        self.assertEqual(process.returncode, 143, stderr)
        self.assertEqual(stderr.count("stopped by another rank at step"), 1, stderr)
        self.assertNotIn("convoy: error", stderr)
        with open(self.path("log.jsonl"), encoding="utf-8") as file:
            last = lines_of(file.read(), "step")[-1]["step"]
        self.assertEqual(os.readlink(self.path("run", "last")), f"step-{last}")
        more = ["--resume", "--steps", str(last + 3), "--checkpoint", self.path("run")]
        resumed = lines_of(self.good(3, 1, *words, *more), "step", "end")
        whole = lines_of(self.good(3, 1, *words, "--steps", str(last + 3)), "step", "end")
        self.assertEqual(resumed, whole[-4:])

    def wait_for_steps(self, count):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            try:
                with open(self.path("log.jsonl"), encoding="utf-8") as file:
                    if file.read().count('"type":"step"') >= count:
                        return
            except FileNotFoundError:
                pass
            time.sleep(0.05)
        self.fail("no steps are made")

    def test_the_same_mistake_of_all_ranks_is_told_once(self):
        self.assertIn("that makes 4 worker(s), but there are 3", self.bad(2, "[rank ", 3, 1, *TOY, "--replicas", "4"))
        self.bad(2, "usage: --batc is no flag", 2, 1, *TOY, "--batc", "4")

    def test_what_only_rank_0_knows_ends_all(self):
        words = [*TOY, "--resume", "--checkpoint", self.path("none")]
        self.assertIn("no valid checkpoint", self.bad(4, "[rank 0] checkpoint: resume: ", 3, 1, *words))

    def test_a_bad_image_of_one_rank_ends_all(self):
        self.folder_of_images()
        words = ["--model", "resnet18", "--data", "folder:" + self.path("images"), "--image-size", "32", "--batch", "4",
                 "--lr", "0.001"]
        self.assertIn("b4.png", self.bad(3, "[rank ", 2, 1, *words))
        done = self.train(2, 1, *words, "--bad-images", "skip", "--bn", "sync")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("skipped 1 of 12"), 1, done.stderr)
        self.assertEqual(sum(line["images"] for line in lines_of(done.stdout, "step")), 11)

    def folder_of_images(self):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from process_test import png  # pylint: disable=import-outside-toplevel

        for part in ("train", "val"):
            for name in "ab":
                os.makedirs(self.path("images", part, name))
                for i in range(6):
                    png(self.path("images", part, name, f"{name}{i}.png"), 32, lambda x, y, i=i: (x, y, i))
        with open(self.path("images", "train", "b", "b4.png"), "r+b") as file:
            file.truncate(60)

    def test_settings_that_differ_are_named(self):
        run = [PROGRAM, "train", *TOY, *TIMEOUT]
        done = mpirun("-n", "1", *run, "--seed", "1", ":", "-n", "1", *run, "--seed", "2")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--seed is '1' on rank 0, '2' on rank 1", done.stderr)
        self.assertEqual(done.stderr.count("convoy: error: "), 1, done.stderr)

    def test_bench_step_compares_settings_too(self):
        run = [PROGRAM, "bench", "step", "--model", "toy", *TIMEOUT, "--batch"]
        done = mpirun("-n", "1", *run, "4", ":", "-n", "1", *run, "8")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--batch is '4' on rank 0, '8' on rank 1", done.stderr)

    def test_devices_of_different_kinds_are_refused(self):
        run = [PROGRAM, "train", *TOY, *TIMEOUT, "--devices"]
        done = mpirun("-n", "1", *run, "cpu:0", ":", "-n", "1", *run, "ref:0")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("kind of --devices is 'cpu' on rank 0, 'ref' on rank 1", done.stderr)
        self.bad(2, "usage: --devices: cpu:0 and ref:0", 1, 1, *TOY, "--devices", "cpu:0,ref:0")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
