#!/usr/bin/env python3
"""The program as a process: exit codes, what stands on stdout and stderr, signals, resume.

Usage: process_test.py PROGRAM [names of tests]
"""
import json
import os
import pty
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAM = ""
LIMIT = 60  # seconds, of each run
TOY = ["train", "--model", "toy", "--data", "synthetic:60", "--batch", "8", "--lr", "0.05"]
SMALL = ["--model", "resnet18", "--data", "synthetic:12", "--image-size", "32"]


def environment(**more):
    """Ours without what would change the program's settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CONVOY_") and not k.endswith("_SIZE")}
    kept.pop("SLURM_NTASKS", None)
    kept.update(more)
    return kept


def png(path, side, pixel, orientation=1):
    """Writes an RGB image; `pixel(x, y)` gives three bytes."""
    tiff = b"II*\0" + struct.pack("<IHHHIII", 8, 1, 0x0112, 3, 1, orientation, 0)
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(side)) for y in range(side))
    data = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    for kind, body in ((b"IHDR", header), (b"eXIf", tiff), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    with open(path, "wb") as file:
        file.write(data)


def idx(folder, images):
    """Writes a training and a validation set of grey images in idx files."""
    os.mkdir(folder)
    for name in ("train", "t10k"):
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, images, 28, 28))
            file.write(bytes(i * 37 % 251 for i in range(images * 28 * 28)))
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, images) + bytes(i % 10 for i in range(images)))


def lines_of(path, *types):
    """The metric lines of these types, without rates and times."""
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    for line in found:
        line.pop("images_per_s", None)
        line.pop("seconds", None)
    return [line for line in found if line["type"] in types]


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="convoy-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_convoy(self, *words, **more):
        more.setdefault("env", environment())
        return subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, timeout=LIMIT, check=False, **more)

    def good(self, *words, **more):
        done = self.run_convoy(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def bad(self, code, kind, *words, **more):
        """The text of the one line on stderr."""
        done = self.run_convoy(*words, **more)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        start = f"convoy: error: {kind}: "
        self.assertTrue(text.startswith(start) and text.count("\n") == 1 and text.endswith("\n"), text)
        return text[len(start):-1]


class Usage(ProcessTest):
    def test_help_and_version(self):
        self.assertRegex(self.good("--version"), r"^convoy \d+\.\d+\.\d+\n$")
        self.assertIn("commands:", self.good("-h"))
        for command in ("train", "eval", "predict", "summary", "convert", "devices", "bench step", "bench data",
                        "bench split"):
            text = self.good(*command.split(), "-h")
            self.assertTrue(text.startswith(f"usage: convoy {command} "), text)
            self.assertIn("--json", text)
        self.assertIn("--label-smoothing", self.good("train", "--help-all"))
        self.assertIn("bench data", self.good("bench", "-h"))

    def test_errors_of_the_command_line(self):
        self.assertIn("no command", self.bad(2, "usage"))
        self.assertIn("did you mean train?", self.bad(2, "usage", "tran"))
        self.assertIn("did you mean --epochs?", self.bad(2, "usage", "train", "--epoch", "1"))
        self.assertIn("here --batch N", self.bad(2, "usage", "train", "-b", "8"))
        self.assertIn("does not go with", self.bad(2, "usage", "predict", "--lr", "1", "a.png"))
        self.assertIn("takes no operand", self.bad(2, "usage", "summary", "resnet50"))
        self.assertIn("did you mean resnet50?", self.bad(2, "usage", "train", "--model", "resnet5"))
        self.assertIn("comes before the command", self.bad(2, "usage", "--json", "train"))
        self.assertIn("step|data|allreduce|split|kernels", self.bad(2, "usage", "bench"))

    def test_config_and_variables(self):
        with open(self.path("run.toml"), "w", encoding="utf-8") as file:
            file.write("model = 'toy'\nbatc = 3\n")
        self.assertIn("run.toml:2: \"batc\"", self.bad(2, "usage", "train", "-c", "run.toml"))
        text = self.bad(2, "usage", "train", env=environment(CONVOY_BATCH="0"))
        self.assertIn("CONVOY_BATCH: 0 is out of range", text)

    def test_a_launcher_of_several_processes_is_refused(self):
        text = self.bad(2, "usage", *TOY, env=environment(OMPI_COMM_WORLD_SIZE="2"))
        self.assertIn("OMPI_COMM_WORLD_SIZE is 2", text)

    def test_stdout_that_is_full_or_has_no_reader_is_a_resource_error(self):
        unread, pipe = os.pipe()
        os.close(unread)
        with open("/dev/full", "wb") as full, os.fdopen(pipe, "wb") as closed:
            for out, why in ((full, b"No space left"), (closed, b"Broken pipe")):
                for words in (["summary"], TOY, [*TOY, "--json"]):
                    done = subprocess.run([PROGRAM, *words], stdout=out, stderr=subprocess.PIPE, env=environment(),
                                          timeout=LIMIT, check=False)
                    self.assertEqual(done.returncode, 7, done.stderr)
                    self.assertIn(why, done.stderr)
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_an_error_is_the_only_line(self):
        misspelt = environment(CONVOY_EPOCH="3")
        self.assertIn("--precision bf16", self.bad(2, "usage", *TOY, "--amp", "--devices", "ref:0", env=misspelt))
        self.assertIn("nowhere", self.bad(3, "data", "train", "--data", "folder:nowhere", env=misspelt))
        done = self.run_convoy(*TOY, "--schedule", "1f1b", env=misspelt)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"convoy: CONVOY_EPOCH is no setting; did you mean CONVOY_EPOCHS?\n", done.stderr)
        self.assertIn(b"convoy: --schedule has no effect with one stage\n", done.stderr)


class Information(ProcessTest):
    def test_devices(self):
        found = json.loads(self.good("devices", "--json"))
        usable = {line["device"]: line["usable"] for line in found["devices"]}
        self.assertTrue(usable["cpu:0"] and usable["ref:0"])
        self.assertEqual(found["cores_allowed"], len(os.sched_getaffinity(0)))
        self.assertIn("convoy", found["versions"])
        self.assertIn("cpu:0", self.good("devices"))
        text = self.good("devices", "--json", env=environment(OMP_NUM_THREADS="9999"))
        self.assertIn("9999", json.loads(text)["problems"][0])

    def test_summary(self):
        found = json.loads(self.good("summary", "--json"))
        self.assertEqual(found["parameters"], 25557032)
        self.assertEqual(found["multiply_adds"], 4089184256)
        self.assertEqual(sum(layer["parameters"] for layer in found["layers"]), found["parameters"])
        self.assertIn("25,557,032", self.good("summary"))

    def test_bench(self):
        step = json.loads(self.good("bench", "step", "--model", "resnet18", "--image-size", "32", "--batch", "2",
                                    "--repeats", "1", "--json"))
        self.assertGreater(step["images_per_s"], 0)
        self.assertGreaterEqual(step["best"], step["images_per_s"])
        self.assertIn("share_of_peak", step)
        self.assertGreater(step["peak_rss_mb"], 1)
        self.assertEqual((step["replicas"], step["all_reduce_s"], step["overlap_share"]), (1, 0, 0))
        step = json.loads(self.good("bench", "step", "--model", "resnet18", "--image-size", "32", "--batch", "4",
                                    "--repeats", "1", "--devices", "cpu:0,cpu:1", "--json"))
        self.assertEqual((step["replicas"], step["images_per_s_per_replica"]), (2, step["images_per_s"] / 2))
        self.assertGreater(step["all_reduce_s"], 0)
        self.assertAlmostEqual(step["overlap_share"], 1 - step["exposed_s"] / step["all_reduce_s"])
        data = json.loads(self.good("bench", "data", "--data", "synthetic:20", "--image-size", "32", "--repeats", "2",
                                    "--json"))
        self.assertEqual(data["images"], 20)
        self.assertGreater(data["images_per_s"], 0)
        sums = json.loads(self.good("bench", "allreduce", "--devices", "cpu:0,cpu:1", "--bytes", "4KiB", "--json"))
        self.assertEqual((sums["impl"], sums["ranks"], sums["bytes"]), ("ring", 2, 4096))
        self.assertIn("one worker", self.bad(2, "usage", "bench", "allreduce"))
        self.assertIn("cuda:0", self.bad(2, "usage", "bench", "allreduce", "--devices", "cpu:0,cuda:0"))
        self.assertIn("--bytes", self.bad(2, "usage", "bench", "allreduce", "--bytes", "4,"))


    def test_bench_kernels(self):
        lines = [json.loads(line) for line in self.good(
            "bench", "kernels", "--batch", "1", "--image-size", "32", "--repeats", "1", "--json").splitlines()]
        self.assertEqual(sum(line["name"] == "conv2d_forward" for line in lines), 23)
        for line in lines:
            self.assertGreater(line["seconds"], 0)
            self.assertIsNone(line["vendor_s"])
        self.assertEqual((lines[-1]["name"], lines[-1]["peak_flops_of"]), ("step", "FMA loop"))
        self.assertGreater(lines[-1]["copy_bytes_s"], 0)
        self.assertIn("cuda:K", lines[-1]["no_vendor"])
        self.assertIn("one device", self.bad(2, "usage", "bench", "kernels", "--devices", "cpu:0,cpu:1"))
        self.assertIn("fp64", self.bad(2, "usage", "bench", "kernels", "--precision", "bf16"))

    def test_bench_split(self):
        quick = ["bench", "split", "--model", "resnet18", "--classes", "10", "--image-size", "32", "--batch", "8",
                 "--repeats", "1", "--threads", "1", "--loss", "mse", "--comm-timeout", "50"]
        lines = [json.loads(line) for line in self.good(
            *quick, "--devices", "cpu:0,cpu:1", "--splits", "2,4", "--cut", "layer3", "--json").splitlines()]
        self.assertEqual([lines[0][key] for key in ("batch", "cut", "bn", "workers")], [8, "layer3", "micro", 2])
        rows = [line for line in lines if "mode" in line]
        found = [(row["mode"], row["split"]) for row in rows]
        self.assertEqual(found, [("single", 8), ("single", 2), ("single", 4), ("model-parallel", 8), ("pipeline", 2),
                                 ("pipeline", 4), ("data-parallel", 2), ("data-parallel", 4)])
        for row in rows:
            self.assertAlmostEqual(row["images_per_s"], 8 / row["seconds"][0])
            self.assertEqual((row["mean_s"], row["std_s"]), (row["seconds"][0], 0))
        whole = rows[0]["images_per_s"]
        for row, alone in ((rows[4], rows[1]), (rows[5], rows[2])):
            self.assertIn(row["schedule"], ("fill-drain", "1f1b", "zb-h1"))
            self.assertEqual((row["cut"], row["stages"], row["micro_batches"]), ("layer3", 2, 8 // row["split"]))
            self.assertTrue(1 < row["ceiling"] < 2, row)
            self.assertAlmostEqual(sum(row["shares"]), 1)
            self.assertAlmostEqual(row["speed_up"], row["images_per_s"] / whole)
            self.assertAlmostEqual(row["share_of_ceiling"] * row["ceiling"], row["images_per_s"] / alone["images_per_s"])
            self.assertTrue(0 < row["bubble"] < 1 and 0 < row["bubble_predicted"] < 1, row)
        verdicts = [line for line in lines if "verdict" in line]
        self.assertEqual(len(verdicts), 3)
        self.assertEqual(verdicts[0]["verdict"] == "holds", rows[3]["images_per_s"] < whole)
        table = self.good(*quick, "--splits", "4").splitlines()  # one device: nothing is split
        self.assertEqual([line.split()[:2] for line in table[1:]], [["mode", "split"], ["single", "8"], ["single", "4"]])
        self.assertIn("--splits 8", self.bad(2, "usage", *quick, "--splits", "8"))
        self.assertIn("3 stages", self.bad(2, "usage", *quick, "--devices", "cpu:0,cpu:1",
                                           "--cut", "layer2,layer3"))
        self.assertIn("1 value per channel", self.bad(2, "usage", *quick, "--splits", "3,1"))

    def test_bench_split_of_few_layers(self):
        # Two layers: one stage a worker and no more.
        toy = ["bench", "split", "--model", "toy", "--batch", "8", "--repeats", "1", "--threads", "1"]
        done = self.run_convoy(*toy, "--splits", "4", "--json", "--devices", "cpu:0,cpu:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"interleaved is left out", done.stderr)
        modes = [line["mode"] for line in map(json.loads, done.stdout.splitlines()) if "mode" in line]
        self.assertEqual(modes, ["single", "single", "model-parallel", "pipeline", "data-parallel"])
        done = self.run_convoy(*toy, "--devices", "cpu:0,cpu:1,cpu:2")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"usage: bench split: toy can be cut into at most 2 stages, but there are 3 workers", done.stderr)


class Training(ProcessTest):
    def test_json_lines(self):
        out = self.good(*TOY, "--epochs", "2", "--json", "--log", "log")
        with open(self.path("log"), encoding="utf-8") as file:
            self.assertEqual(out, file.read())
        lines = [json.loads(line) for line in out.splitlines()]
        types = [line["type"] for line in lines]
        self.assertEqual(types, ["run"] + ["step"] * 8 + ["eval"] + ["step"] * 8 + ["eval", "end"])
        self.assertEqual(lines[0]["batch"], 8)
        self.assertEqual(lines[0]["parameters"], 165)
        self.assertEqual([line["images"] for line in lines[1:9]], [8] * 7 + [4])
        self.assertEqual(lines[-1]["steps"], 16)
        self.assertLess(lines[-2]["loss"], lines[9]["loss"])

    def test_the_same_command_twice_and_other_loader_threads(self):
        for name, threads in (("a", "1"), ("b", "1"), ("c", "4")):
            self.good(*TOY, "--epochs", "2", "--log", name, "--loader-threads", threads)
        first = lines_of(self.path("a"), "step", "eval", "end")
        self.assertEqual(first, lines_of(self.path("b"), "step", "eval", "end"))
        self.assertEqual(first, lines_of(self.path("c"), "step", "eval", "end"))

    def test_resume_equals_never_having_stopped(self):
        self.good(*TOY, "--epochs", "3", "--log", "whole")
        whole = lines_of(self.path("whole"), "step", "eval", "end")
        for stop in ("5", "8", "11"):  # in an epoch, at its end, in the next
            common = [*TOY, "--epochs", "3", "--eval-every", "1", "--checkpoint", "ck" + stop, "--log", "log" + stop]
            self.good(*common, "--steps", stop)
            self.good(*common, "--resume")
            self.assertEqual(lines_of(self.path("log" + stop), "step", "eval", "end"), whole)

    def test_a_folder_that_holds_a_run(self):
        self.good(*TOY, "--steps", "2", "--checkpoint", "ck")
        self.assertIn("--resume", self.bad(2, "usage", *TOY, "--steps", "2", "--checkpoint", "ck"))
        self.assertIn("no valid checkpoint", self.bad(4, "checkpoint", *TOY, "--checkpoint", "none", "--resume"))
        self.good(*TOY, "--steps", "2", "--checkpoint", "new", "--resume", "auto")

    def test_numbers_that_are_not_finite(self):
        text = self.bad(6, "numerics", *TOY, "--lr", "1e300", "--steps", "20")
        self.assertIn("step", text)

    def test_a_full_disk_of_the_log(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        text = self.bad(7, "resource", *TOY, "--log", "log", "--json", preexec_fn=limit)
        self.assertIn("log", text)

    def test_missing_data(self):
        self.assertIn("nowhere", self.bad(3, "data", "train", "--data", "folder:nowhere"))


class SharedGpu(ProcessTest):
    """Two workers on one emulated GPU."""
    TOY = ["--model", "toy", "--batch", "8", "--data", "synthetic:32", "--devices", "emu:0,emu:0"]
    TWICE = "emu:0 is named twice"

    def test_stages(self):
        text = self.good("verify", *self.TOY, "--stages", "2", "--micro-batch-size", "2", "--json")
        self.assertTrue(json.loads(text.splitlines()[-1])["bitwise"])
        done = self.run_convoy("bench", "split", "--model", "toy", "--batch", "8", "--splits", "4", "--repeats", "1",
                               "--json", "--devices", "emu:0,emu:0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"data parallel is left out", done.stderr)
        modes = [line["mode"] for line in map(json.loads, done.stdout.splitlines()) if "mode" in line]
        self.assertEqual(modes, ["single", "single", "model-parallel", "pipeline"])

    def test_replicas_go_over_the_host(self):
        train = ["train", *self.TOY, "--replicas", "2", "--steps", "2", "--json"]
        self.assertIn(self.TWICE + ", for the same stage of two replicas: NCCL", self.bad(2, "usage", *train))
        line = json.loads(self.good(*train, "--comm", "thread").splitlines()[-1])
        apart = json.loads(self.good(*train, "--devices", "emu:0,emu:1").splitlines()[-1])
        self.assertEqual(line["weights_hash"], apart["weights_hash"])

    def test_what_needs_a_device_each(self):
        stages = [*self.TOY, "--stages", "2"]
        self.assertIn(self.TWICE, self.bad(2, "usage", "train", *stages, "--micro-batch-size", "2", "--device-memory", "1GiB"))
        self.assertIn(self.TWICE, self.bad(2, "usage", "verify", *self.TOY, "--replicas", "2", "--comm", "thread"))
        done = self.run_convoy("plan", "--model", "toy", "--batch", "8", "--devices", "emu:0,emu:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn(self.TWICE.encode(), done.stderr)


class Signals(ProcessTest):
    def start(self, *words):
        """A run that has made its first steps."""
        run = subprocess.Popen([PROGRAM, *TOY, "--epochs", "1000000", "--save-every", "1000000", "--json", *words],
                               cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (run.stdout.close(), run.stderr.close()))
        self.addCleanup(lambda: run.poll() is None and run.kill())
        for _ in range(4):
            run.stdout.readline()
        return run

    def test_sigterm_saves_and_leaves(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            name = number.name
            run = self.start("--checkpoint", name)
            run.send_signal(number)
            _, errors = run.communicate(timeout=LIMIT)
            self.assertEqual(run.returncode, 143)
            step = int(os.path.basename(os.path.realpath(self.path(name, "last"))).removeprefix("step-"))
            self.assertEqual(errors.decode(), f"convoy: stopped by {name} at step {step}; go on with --resume\n")
            out = self.good(*TOY, "--steps", str(step + 1), "--json", "--checkpoint", name, "--resume")
            self.assertIn('"step":' + str(step + 1), out)

    def test_kill_at_any_moment_loses_nothing_that_was_saved(self):
        words = [*TOY, "--epochs", "40", "--save-every", "1"]
        self.good(*words, "--log", "whole", "--checkpoint", "whole-ck")
        moments = random.Random(1)
        resumed = [*words, "--log", "log", "--checkpoint", "ck", "--resume", "auto"]
        for _ in range(10):
            run = self.start(*resumed)
            time.sleep(moments.uniform(0.05, 0.4))
            run.kill()
            run.wait(LIMIT)
        self.good(*resumed)
        self.assertEqual(lines_of(self.path("log"), "step", "eval", "end"),
                         lines_of(self.path("whole"), "step", "eval", "end"))
        self.assertFalse([name for name in os.listdir(self.path("ck")) if name.startswith(".saving")])

    def test_sigterm_without_a_checkpoint(self):
        run = self.start()
        run.terminate()
        _, errors = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 143)
        self.assertRegex(errors, rb"^convoy: stopped by SIGTERM at step \d+; nothing is saved without --checkpoint\n$")

    def test_sigterm_while_data_are_opened_leaves(self):
        os.mkfifo(self.path("run.toml"))
        run = subprocess.Popen([PROGRAM, "train", "-c", "run.toml", "--json"], cwd=self.folder, env=environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: run.poll() is None and run.kill())
        with open(self.path("run.toml"), "w", encoding="utf-8") as config:  # waits for the reader
            config.write("model = 'resnet18'\ndata = 'synthetic:400000000'\n")
        time.sleep(0.3)  # well within the time that checking so many labels takes
        run.terminate()
        out, errors = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 143)
        self.assertEqual((out, errors), (b"", b""))

    def test_a_reader_that_goes_away_costs_no_step(self):
        run = self.start("--checkpoint", "ck")
        run.stdout.close()
        self.assertRegex(run.stderr.read(), rb"^convoy: error: resource: [^\n]*stdout: Broken pipe\n$")
        self.assertEqual(run.wait(timeout=LIMIT), 7)
        step = int(os.path.basename(os.path.realpath(self.path("ck", "last"))).removeprefix("step-"))
        self.assertGreaterEqual(step, 3)

    def test_ctrl_c_leaves_at_once_and_saves_nothing(self):
        run = self.start("--checkpoint", "ck")
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 130)
        self.assertEqual(errors.count(b"\n"), 1)
        self.assertEqual([name for name in os.listdir(self.path("ck")) if name.startswith("step-")], [])


class Terminal(ProcessTest):
    def on_terminal(self, **variables):
        master, slave = pty.openpty()
        env = environment(TERM="xterm", **variables)
        env.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        run = subprocess.Popen([PROGRAM, *TOY], cwd=self.folder, env=env, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        os.close(master)
        run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 0)
        return text

    def test_a_bar_on_a_terminal_and_lines_elsewhere(self):
        bar = self.on_terminal()
        self.assertIn(b"\033[K", bar)
        self.assertIn(b"epoch 1/1  8/8", bar)
        self.assertNotIn(b"\033[K", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn("\033", self.good(*TOY))


class Networks(ProcessTest):
    def test_predict_eval_and_convert(self):
        self.good("train", *SMALL, "--batch", "4", "--steps", "2", "--lr", "0.01", "--checkpoint", "ck")
        png(self.path("a.png"), 32, lambda x, y: (8 * x, 8 * y, 128))
        png(self.path("b.png"), 50, lambda x, y: (255 - 5 * x, 0, 5 * y))
        out = self.good("predict", "--checkpoint", "ck", "--json", "--logits", "a.png", "b.png")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["image"] for line in lines], ["a.png", "b.png"])
        for line in lines:
            self.assertEqual(len(line["top"]), 5)
            self.assertEqual(line["top"][0]["class"], line["logits"].index(max(line["logits"])))
            self.assertLessEqual(sum(guess["p"] for guess in line["top"]), 1 + 1e-12)
        text = self.good("predict", "--checkpoint", "ck", "a.png")
        self.assertIn(lines[0]["top"][0]["name"], text)

        # Weights go out and in again: another program's file gives the same logits.
        self.good("convert", "ck", "w.safetensors")
        self.good("convert", "--model", "resnet18", "w.safetensors", "again.safetensors")
        with open(self.path("w.safetensors"), "rb") as one, open(self.path("again.safetensors"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        same = ["predict", "--model", "resnet18", "--image-size", "32", "--json", "--logits", "a.png"]
        first = json.loads(self.good(*same, "--weights", "w.safetensors"))
        self.assertEqual(first["logits"], json.loads(self.good(*same, "--weights", "again.safetensors"))["logits"])

        self.assertEqual(len(first["logits"]), 10)

        # Images of idx files have 32 pixels unless told otherwise, as in training.
        idx(self.path("idx"), 10)
        weights = ["eval", "--weights", "w.safetensors", "--model", "resnet18", "--data", "fashion-mnist:idx", "--json"]
        self.assertEqual(self.good(*weights), self.good(*weights, "--image-size", "32"))

        # A flag wins over a variable, where the two exclude each other too.
        with_variable = environment(CONVOY_CHECKPOINT="none")
        self.assertEqual(first, json.loads(self.good(*same, "--weights", "w.safetensors", env=with_variable)))

        # float64 is told with all its digits.
        wide = json.loads(self.good(*same, "--weights", "w.safetensors", "--devices", "ref:0", "--precision", "fp64"))
        single = [struct.unpack("f", struct.pack("f", value))[0] for value in wide["logits"]]
        self.assertNotEqual(wide["logits"], single)
        for value, near in zip(wide["logits"], first["logits"]):
            self.assertAlmostEqual(value, near, places=2)

        # What is rotated is told, unless something went wrong: an error is the only line.
        png(self.path("turned.png"), 32, lambda x, y: (8 * x, 8 * y, 128), orientation=6)
        done = self.run_convoy(*same, "turned.png", "--weights", "w.safetensors")
        self.assertIn(b"convoy: 1 image carries a rotation (EXIF); pixels are used as stored\n", done.stderr)
        self.assertIn("nofile.png", self.bad(3, "data", *same, "turned.png", "nofile.png", "--weights", "w.safetensors"))

        found = json.loads(self.good("eval", "--checkpoint", "ck", "--json"))
        self.assertEqual(found["type"], "eval")
        self.assertEqual(found["top1"] * found["images"] % 1, 0)
        self.assertLessEqual(found["top1"], found["top5"])
        self.assertIn("top-1", self.good("eval", "--checkpoint", "ck", "--data", "synthetic:12"))

        self.assertIn("nofile.png", self.bad(3, "data", "predict", "--checkpoint", "ck", "nofile.png"))
        text = self.bad(4, "checkpoint", "predict", "--weights", "w.safetensors", "--classes", "7", "--model", "resnet18", "a.png")
        self.assertIn("fc.weight (10, 512), expected (7, 512)", text)
        self.assertIn("holds resnet18", self.bad(2, "usage", "predict", "--checkpoint", "ck", "--model", "resnet50", "a.png"))

    def test_errors_of_predict_and_convert(self):
        self.assertIn("needs an image", self.bad(2, "usage", "predict", "--checkpoint", "ck"))
        self.assertIn("expected --checkpoint", self.bad(2, "usage", "predict", "a.png"))
        self.assertIn("exclude each other", self.bad(2, "usage", "predict", "--checkpoint", "a", "--weights", "b", "a.png"))
        self.assertIn("no valid checkpoint", self.bad(4, "checkpoint", "predict", "--checkpoint", "none", "a.png"))
        self.assertIn("none.safetensors", self.bad(4, "checkpoint", "predict", "--weights", "none.safetensors", "a.png"))
        self.assertIn("FROM TO.safetensors", self.bad(2, "usage", "convert", "ck"))
        self.assertIn("does not end in", self.bad(2, "usage", "convert", "ck", "w.bin"))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
