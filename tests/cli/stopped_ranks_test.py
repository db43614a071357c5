#!/usr/bin/env python3
"""Ranks that are asked to stop, or meet an error of their own: all agree on one step, save once, and go on exactly.

Usage: stopped_ranks_test.py PROGRAM TROUBLE [names of tests]
"""
import json
import os
import signal
import time

from ranks import SLOW_STEPS, TOY, RanksTest, main, trouble

STEPS = 5  # of an epoch of 80 images; two epochs are run
WORDS = [*SLOW_STEPS, "--data", "folder:images", "--batch", "16", "--epochs", "2", "--checkpoint", "run"]


class StopTest(RanksTest):
    undisturbed = None

    def setUp(self):
        super().setUp()
        self.make_images(8 * STEPS, 16)
        if StopTest.undisturbed is None:
            self.good("mpirun", 2, *WORDS, "--checkpoint", "whole")
            StopTest.undisturbed = self.hash_of_end()
            os.remove(self.path("log"))

    def ask(self, job, rank=None, number=signal.SIGTERM):
        """Sends the signal to the rank, or the launcher; the last step that was over then."""
        os.kill(job.process.pid if rank is None else job.ranks()[rank], number)
        return self.last_step()

    def stops(self, job, step, codes=(143,)):
        """The job ends with one checkpoint soon after the step that was in work: launchers take time to pass a signal on."""
        self.assert_ends(job, *codes)
        self.assertEqual(job.error_lines, [])
        self.assert_gone(job, time.monotonic(), 5)
        saved = self.saved_step()
        self.assertGreaterEqual(saved, step)
        self.assertLessEqual(saved, step + 4)
        self.assertEqual(saved, max(self.last_step(), step), "the checkpoint is not of the last step")
        return saved

    def goes_on_exactly(self):
        self.good("mpirun", 2, *WORDS, "--resume")
        self.assertEqual(self.hash_of_end(), self.undisturbed)

    def test_in_the_first_step(self):
        job = self.start("launch", 2, *WORDS)
        self.until(lambda: self.lines("run"), "the first step", job)
        self.stops(job, self.ask(job, rank=1))
        self.goes_on_exactly()

    def test_in_the_middle_of_an_epoch(self):
        job = self.start("launch", 2, *WORDS)
        self.reach(job, 2)
        step = self.ask(job)
        self.ask(job)  # a second one does no harm
        self.stops(job, step)
        self.goes_on_exactly()

    def test_in_the_evaluation(self):
        job = self.start("mpirun", 2, *WORDS, **trouble(0, open="val-:0.03"))
        self.reach(job, STEPS)
        self.assertEqual(self.stops(job, self.ask(job, rank=0)), STEPS)
        self.assertEqual(self.lines("eval"), [])
        self.goes_on_exactly()

    def test_while_saving(self):
        job = self.start("launch", 2, *WORDS, "--save-every", "3", **trouble(0, fsync=0.2))
        saving = self.path("run", ".saving-")
        self.until(lambda: any(self.path("run", name).startswith(saving) for name in os.listdir(self.path("run")))
                   if os.path.isdir(self.path("run")) else False, "the save", job)
        self.assertEqual(self.last_step(), 3)
        self.stops(job, self.ask(job))
        self.assertFalse([name for name in os.listdir(self.path("run")) if name.startswith(".saving-")])
        self.goes_on_exactly()

    def test_in_the_last_step(self):
        job = self.start("mpirun", 2, *WORDS)
        self.reach(job, 2 * STEPS - 1)
        step = self.ask(job, number=signal.SIGUSR1)  # mpirun passes it on
        self.stops(job, step, (143, 0))
        self.goes_on_exactly()


class OwnErrorTest(RanksTest):
    def test_a_damaged_image_is_said_once(self):
        self.make_images(8)
        damaged = self.path("images", "train", "b", "train-5.png")
        os.truncate(damaged, os.path.getsize(damaged) - 30)
        job = self.start("launch", 4, *SLOW_STEPS, "--data", "folder:images", "--bad-images", "stop")
        self.assertEqual(job.wait(), 3, job.err)
        self.assert_gone(job, time.monotonic(), 10)
        self.assertRegex(job.error_lines[0], r"^convoy: error: \[rank [0-3]\] data: images/train/b/train-5\.png: ")
        self.assertEqual(job.err.rstrip().splitlines()[-1], job.error_lines[0])
        self.assertEqual(job.err.count("train-5"), 1, job.err)

    def test_a_flipped_bit_is_found(self):
        still = [*TOY, "--lr", "1e-30", "--momentum", "0", "--checkpoint", "run"]  # weights stay as they are
        job = self.start("launch", 3, *still, "--epochs", "100000", "--save-every", "100000")
        pid = self.reach(job, 10)[1]
        saved = self.path("run", "last", "model.safetensors")
        self.until(lambda: os.path.exists(saved), "a checkpoint", job)
        self.assertGreater(flip_bit(pid, weights_of(saved)), 0)
        self.assertEqual(job.wait(), 5, job.err)
        line = r"^convoy: error: \[rank 1\] communication: after epoch \d+, the weights of rank 1 differ from those of 2 of 3 ranks: "
        self.assertRegex(job.error_lines[-1], line)


def weights_of(path):
    """The bytes of the largest tensor of a safetensors file."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
        ranges = [entry["data_offsets"] for name, entry in tensors.items() if name != "__metadata__"]
        begin, end = max(ranges, key=lambda one: one[1] - one[0])
        file.seek(8 + size + begin)
        return file.read(end - begin)


def flip_bit(pid, wanted):
    """Changes the lowest bit of the first number wherever the bytes stand in a process's memory; how often."""
    found = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        areas = [line.split() for line in file]
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for area in areas:
            begin, end = (int(part, 16) for part in area[0].split("-"))
            if not area[1].startswith("rw") or (len(area) > 5 and area[5].startswith(("/", "[v"))):
                continue
            try:
                memory.seek(begin)
                data = memory.read(end - begin)
            except OSError:
                continue  # it has gone since
            place = data.find(wanted)
            while place >= 0:
                memory.seek(begin + place)
                memory.write(bytes([wanted[0] ^ 1]))
                found += 1
                place = data.find(wanted, place + 1)
    return found


if __name__ == "__main__":
    main()
