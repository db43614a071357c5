"""bench/compare with programs in the place of Convoy and Python that print canned lines: order, sums, failures, table.

Each program adds its name to a file when it measures, so that the order shows; numbers come from a queue of its own.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
COMPARE = os.path.join(ROOT, "bench", "compare")
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True
from comparing import table  # noqa: E402
from comparing.processes import on_cores  # noqa: E402

HELPERS = """
import json, os, sys
HERE = os.path.dirname(os.path.abspath(__file__))

def next_number(name):
    # The next of its numbers; the order of all measurements is kept.
    with open(os.path.join(HERE, "order"), "a") as file:
        file.write(name + "\\n")
    path = os.path.join(HERE, "numbers-" + name.replace(" ", "-"))
    numbers = json.load(open(path))
    json.dump(numbers[1:], open(path, "w"))
    return numbers[0]

def say(**line):
    print(json.dumps(line), flush=True)

def fails(name):
    if os.path.exists(os.path.join(HERE, "fail-" + name)):
        print("line one\\n" * 9 + name + " has no luck", file=sys.stderr)
        sys.exit(3)
"""
CONVOY = HELPERS + """
def flag(name):
    return sys.argv[sys.argv.index(name) + 1]

command = sys.argv[1:]
if command[0] == "devices":
    text = os.environ.get("CONVOY_CPU_ISA", "AVX-9") + ", loops"
    say(devices=[{"device": "cpu:0", "text": text}], versions={"convoy": "9.8.7"})
elif command[1] == "step":
    fails("convoy")
    ranks = os.environ.get("FAKE_RANKS", "1")
    number = next_number("convoy" + ranks)
    say(images_per_s=number, share_of_peak=0.75, peak_rss_mb=1200, batch=flag("--batch"))
elif command[1] == "split":
    say(mode="single", images_per_s=1000)
    say(mode="pipeline", images_per_s=next_number("split"), share_of_ceiling=0.96)
elif command[1] == "allreduce":
    for size in flag("--bytes").split(","):
        say(impl="ring", bytes=int(size), bus_gb_s=next_number("ring"))
        say(impl="mpi", bytes=int(size), bus_gb_s=1e6)
elif command[1] == "data":
    assert flag("--data").startswith("folder:"), command
    assert len(os.sched_getaffinity(0)) == 1
    say(images_per_s=next_number("data"))
"""
PYTHON = HELPERS + """
command = sys.argv[1:]
if command[0] == "-c":
    fails("versions")
    say(**{name: "1.2-" + name for name in command[2].split(",")})
    sys.exit()
script = os.path.basename(command[0])
name = command[command.index("--variants") + 1] if script == "step.py" else script[:-3]
fails(name)
assert "--turns" in command
assert os.environ.get("ATEN_CPU_CAPABILITY") == os.environ.get("CONVOY_CPU_ISA")
say(ready=True) if os.environ["RANK"] == "0" else None
for _turn in sys.stdin:
    fails(name + "-later")
    if os.environ["RANK"] != "0":
        continue
    if script == "allreduce.py":
        for size in command[command.index("--bytes") + 1].split(","):
            say(bytes=int(size), bus_gb_s=next_number(name))
    else:
        say(images_per_s=next_number(name), peak_rss_mb=2000)
    say(done=True)
"""
MPIRUN = """
import os, sys
if sys.argv[1] == "--version":
    print("mpirun (Fake MPI) 7")
    sys.exit()
command = sys.argv[sys.argv.index("-n") + 2:]
assert sys.argv[sys.argv.index("-n") + 1] == "2"
os.environ["FAKE_RANKS"] = "2"
os.execv(command[0], command)
"""
MPI_PROGRAM = HELPERS.replace("os.path.abspath(__file__)", "{here!r} + '/x'") + """
for size in sys.argv[1].split(","):
    say(bytes=int(size), bus_gb_s=next_number("mpi"))
"""
MPICXX = """
import os, shutil, sys
HERE = os.path.dirname(os.path.abspath(__file__))
assert sys.argv[-1].endswith("bench/peers/allreduce.cpp") and os.path.exists(sys.argv[-1])
shutil.copy(os.path.join(HERE, "mpi-program"), sys.argv[sys.argv.index("-o") + 1])
"""


class Fakes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("convoy", CONVOY), ("python", PYTHON), ("mpirun", MPIRUN), ("mpicxx", MPICXX),
                           ("mpi-program", MPI_PROGRAM.replace("{here!r}", repr(self.folder)))):
            self.write(name, f"#!{sys.executable}\n{text}", 0o755)
        os.makedirs(os.path.join(self.folder, "jpegs", "train"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def numbers(self, **values):
        for name, numbers in values.items():
            self.write("numbers-" + name, json.dumps(numbers))

    def run_it(self, *flags):
        programs = [text for name in ("convoy", "python", "mpirun", "mpicxx") for text in (
            "--" + name, self.path(name))]
        return subprocess.run([COMPARE, *programs, "--small", *flags], capture_output=True, text=True, timeout=120,
                              check=False)

    def lines(self, *flags, code=0):
        done = self.run_it("--json", *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return {line["row"]: line for line in lines[:-1]}, lines[-1]

    def order(self):
        with open(self.path("order"), encoding="utf-8") as file:
            return file.read().split()


class Sums(Fakes):
    def test_programs_take_turns_and_the_best_peer_counts(self):
        self.numbers(convoy1=[10, 12, 8], eager=[3, 3, 3], compile=[5, 4, 8])
        rows, summary = self.lines("--rows", "step-1,memory", "--runs", "3", "--variants", "eager,compile")
        self.assertEqual(self.order(), ["convoy1", "eager", "compile"] * 3)
        row = rows["step-1"]
        self.assertEqual(row["medians"], {"Convoy": 10, "eager": 3, "compile": 5})
        self.assertEqual((row["against"], row["ratio"]), ("compile", 2))
        self.assertEqual((row["ratio_min"], row["ratio_max"]), (1, 3))  # 10/5 12/4 8/8
        self.assertEqual(row["facts"], {"share_of_peak": 0.75})
        self.assertEqual((rows["memory"]["ratio"], rows["memory"]["less_is_better"]), (0.6, True))
        self.assertEqual(summary["ratios"], {"step-1": 2, "memory": 0.6})
        self.assertEqual(row["machine"]["kernels"], "AVX-9, loops")
        self.assertEqual((row["machine"]["convoy"], row["versions"]["torch"]), ("9.8.7", "1.2-torch"))

    def test_one_instruction_set_for_both(self):
        self.numbers(convoy1=[10], eager=[3])
        rows, _ = self.lines("--rows", "step-1", "--runs", "1", "--variants", "eager", "--isa", "avx2")
        self.assertEqual(rows["step-1"]["machine"]["kernels"], "avx2, loops")

    def test_memory_alone_is_one_row(self):
        self.numbers(convoy1=[10], eager=[3])
        rows, _ = self.lines("--rows", "memory", "--runs", "1", "--variants", "eager")
        self.assertEqual(list(rows), ["memory"])

    def test_rows_of_two_ranks(self):
        self.numbers(convoy2=[20, 20], convoy1=[10, 12.5], ddp=[10, 16], split=[30, 30], pipeline=[20, 20])
        rows, _ = self.lines("--rows", "ddp,pipeline", "--runs", "2")
        self.assertEqual(self.order(), ["convoy2", "ddp", "convoy1"] * 2 + ["split", "pipeline"] * 2)
        self.assertEqual(rows["ddp"]["medians"], {"Convoy": 20, "DDP": 13})
        self.assertEqual((rows["ddp-scaling"]["ratio_min"], rows["ddp-scaling"]["ratio_max"]), (1.6, 2))
        self.assertEqual((rows["pipeline"]["ratio"], rows["pipeline"]["facts"]), (1.5, {"share_of_ceiling": 0.96}))

    def test_all_reduce_against_the_better_of_two(self):
        self.numbers(ring=[2, 9], mpi=[4, 3], allreduce=[1, 6])
        rows, _ = self.lines("--rows", "allreduce", "--runs", "1")
        self.assertEqual({name: (row["against"], row["ratio"]) for name, row in rows.items()},
                         {"allreduce-4000": ("Open MPI", 0.5), "allreduce-1000000": ("Gloo", 1.5)})
        self.assertIn("mpirun --bind-to none -n 2 ./allreduce 4000,1000000", rows["allreduce-4000"]["commands"])

    def test_loader_on_one_core(self):
        self.numbers(data=[600], loader=[200])
        rows, _ = self.lines("--rows", "data", "--runs", "1", "--data", self.path("jpegs"))
        self.assertEqual((rows["data"]["ratio"], rows["data"]["versions"]["torchvision"]), (3, "1.2-torchvision"))
        self.assertIn("python bench/peers/loader.py JPEGS/train", rows["data"]["commands"])


class Failures(Fakes):
    def refused(self, text, *flags):
        done = self.run_it(*flags)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def test_command_line(self):
        self.refused("--rows: 'steps' is unknown, expected some of step-1,", "--rows", "steps")
        self.refused("--variants: 'fast' is unknown", "--variants", "fast")
        self.refused("--runs 0: expected at least 1", "--runs", "0")
        self.refused("no folder train in it", "--rows", "data", "--data", self.folder)

    def test_too_few_cores(self):
        with on_cores({min(os.sched_getaffinity(0))}):
            self.refused("row pipeline needs 2 cores, this process may use 1", "--rows", "step-1,pipeline")

    def test_programs_that_are_missing_or_others(self):
        self.refused("--convoy /nowhere: no such program", "--convoy", "/nowhere")
        self.refused("--python /nowhere: no such program", "--python", "/nowhere")
        self.refused("--mpirun /nowhere: no such program", "--mpirun", "/nowhere", "--rows", "ddp")
        self.refused("no Convoy, `devices --json` does not list devices", "--convoy", shutil.which("true"))
        self.write("bare", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', 0o755)
        self.refused("expected a Python with torch: ModuleNotFoundError: No module named 'torch'", "--python",
                     self.path("bare"), "--rows", "step-1")

    def test_a_failed_peer_is_told_and_others_go_on(self):
        self.numbers(convoy1=[10], eager=[5], data=[600], loader=[200])
        self.write("fail-eager", "")
        done = self.run_it("--rows", "step-1,data", "--runs", "1", "--data", self.path("jpegs"), "--json")
        self.assertEqual(done.returncode, 1)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line.get("row") for line in lines], ["data", None])
        self.assertIn("ended with 3", lines[1]["failed"]["step-1"])
        self.assertIn("step.py", lines[1]["failed"]["step-1"])
        self.assertIn("line one\n    eager has no luck", done.stderr)
        self.assertEqual(done.stderr.count("line one"), 5)

    def test_a_peer_that_fails_in_its_turn(self):
        self.numbers(convoy1=[10])
        self.write("fail-eager-later", "")
        _, summary = self.lines("--rows", "step-1", "--variants", "eager", code=1)
        self.assertIn("eager-later has no luck", summary["failed"]["step-1"])

    def test_convoy_fails(self):
        self.write("fail-convoy", "")
        _, summary = self.lines("--rows", "step-1", "--variants", "eager", code=1)
        self.assertIn("convoy bench step", summary["failed"]["step-1"])
        self.assertIn("convoy has no luck", summary["failed"]["step-1"])

    def test_a_peer_that_never_answers(self):
        self.write("python", f"#!{sys.executable}\n" + PYTHON.replace(
            'fails(name)\n', 'import time; time.sleep(60)\n', 1), 0o755)
        _, summary = self.lines("--rows", "step-1", "--variants", "eager", "--limit", "1", code=1)
        self.assertIn("no answer within 1 s (--limit)", summary["failed"]["step-1"])


class Ends(Fakes):
    def test_a_signal_ends_all_that_runs(self):
        self.write("python", f"#!{sys.executable}\n" + PYTHON.replace("for _turn in sys.stdin:", (
            "open(os.path.join(HERE, 'pid'), 'w').write(str(os.getpid()))\nfor _turn in iter(int, 1):\n"
            "    import time; time.sleep(60)\nfor _turn in sys.stdin:")), 0o755)
        self.numbers(convoy1=[10])
        process = subprocess.Popen([COMPARE, "--convoy", self.path("convoy"), "--python", self.path("python"),
                                    "--small", "--rows", "step-1", "--variants", "eager"], stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while "turn 1 of 5: Convoy" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        with open(self.path("pid"), encoding="utf-8") as file:
            peer = int(file.read())
        process.terminate()
        self.assertEqual(process.wait(60), 143)
        self.assertRaises(ProcessLookupError, os.kill, peer, 0)


ROW = {"row": "step-1", "title": "training step", "unit": "images/s", "ours": "Convoy", "against": "compile",
       "ratio": 1.414, "ratio_min": 1.3, "ratio_max": 1.5, "less_is_better": False, "turns": 5,
       "medians": {"Convoy": 5.8, "eager": 2.912, "compile": 4.1}, "values": {}, "facts": {"share_of_peak": 0.747},
       "settings": "ResNet-50", "date": "2026-11-30", "commit": "abc", "commands": ["convoy bench step"],
       "machine": {"processor": "Fast CPU", "cores": 2}, "versions": {"torch": "2.13"}}


class Table(Fakes):
    def test_a_line_of_the_table(self):
        text = table.markdown([ROW])
        self.assertIn("| training step | 5.8 images/s, 75 % of the FMA peak | compile 4.1, eager 2.91 | "
                      "1.41 (1.30 to 1.50) | 5 | 2026-11-30, abc |\n", text)
        self.assertIn("## Fast CPU\n", text)
        self.assertIn("| PyTorch | 2.13 |\n", text)
        self.assertIn("- training step: ResNet-50.\n", text)
        self.assertIn("\n    convoy bench step\n", text)

    def test_the_newer_line_counts_and_machines_stand_apart(self):
        other = ROW | {"machine": ROW["machine"] | {"processor": "Slow CPU"}, "ratio": 3}
        text = table.markdown([ROW, other, ROW | {"ratio": 2, "versions": {"torch": "2.14"}},
                               ROW | {"row": "step-2"}])
        self.assertEqual(text.count("1.41 ("), 1)
        self.assertIn("| PyTorch | 2.14, 2.13 |", text)
        self.assertLess(text.index("2.00 ("), text.index("## Slow CPU"))
        self.assertLess(text.index("## Slow CPU"), text.index("3.00 ("))

    def test_rows_kept_in_a_file_give_the_document(self):
        self.numbers(convoy1=[10, 10], eager=[5, 4])
        flags = ("--rows", "step-1", "--variants", "eager", "--runs", "1", "--append", self.path("kept"))
        self.assertEqual(self.run_it(*flags).stdout,
                         "training step, 1 thread  10 images/s, 75 % of the FMA peak  eager 5  2.00 (2.00 to 2.00)\n")
        direct = self.run_it(*flags, "--markdown").stdout
        kept = subprocess.run([COMPARE, "--markdown-from", self.path("kept")], capture_output=True, text=True, check=True)
        self.assertEqual(kept.stdout, direct)
        self.assertIn("| 2.50 (2.50 to 2.50) |", direct)

    def test_files_without_rows_are_refused(self):
        self.write("kept", "{}\n")
        self.write("part", json.dumps({key: value for key, value in ROW.items() if key != "unit"}))
        self.write("text", "words\n")
        for name, text in (("kept", "no line of a row in it"), ("nowhere", "No such file"), ("text", "Expecting value"),
                           ("part", "row step-1 has no unit")):
            done = subprocess.run([COMPARE, "--markdown-from", self.path(name)], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
