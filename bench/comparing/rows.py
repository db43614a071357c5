"""What is compared: Convoy's commands, the peers that do the same work, and how the lines of both are read.

`GROUPS` has them by the names that --rows takes; a group may give several rows of the table.
"""
import os
from dataclasses import dataclass

from .measure import Comparison, Row
from .sides import Command, Script

VARIANTS = ("eager", "channels_last", "compile")
SIZES = {4000: "4 KB", 64000: "64 KB", 1000000: "1 MB", 25000000: "25 MB", 100000000: "100 MB"}


@dataclass(frozen=True)
class Work:
    """How much of it; `SMALL` only shows that everything runs."""

    batch: int = 16
    image: int = 224
    ddp_batch: int = 32
    split_batch: int = 120
    split_image: int = 128
    split: int = 12
    bytes: tuple = tuple(SIZES)
    jpegs: int = 600


FULL = Work()
SMALL = Work(batch=2, image=64, ddp_batch=4, split_batch=8, split_image=64, split=2, bytes=(4000, 1000000), jpegs=64)


@dataclass(frozen=True)
class Options:
    """What the command line says about what runs."""

    convoy: str
    python: str
    python_vision: str
    mpirun: str
    variants: tuple
    work: Work
    limit: int  # seconds
    repeats: int
    data: str  # folder of JPEG files
    allreduce: str  # bench/peers/allreduce.cpp, compiled


def flags(**values):
    """--image-size 224 of image_size=224."""
    return [text for name, value in values.items() for text in (f"--{name.replace('_', '-')}", str(value))]


def reads(*keys):
    """The images/s of the first line, under these keys."""
    return lambda lines: {key: lines[0]["images_per_s"] for key in keys}


def of_step(name, memory):
    def read(lines):
        found = {name: lines[0]["images_per_s"]}
        if memory:
            found["memory"] = lines[0]["peak_rss_mb"]
        if "share_of_peak" in lines[0]:
            found["share_of_peak"] = lines[0]["share_of_peak"]
        return found

    return read


def step_command(options, batch, threads):
    return [options.convoy, "bench", "step", "--json", *flags(
        model="resnet50", image_size=options.work.image, batch=batch, threads=threads, repeats=options.repeats)]


def step_peer(options, variant, threads, read):
    return Script(variant, options.python, "step.py", flags(
        threads=threads, batch=options.work.batch, size=options.work.image, variants=variant,
        repeats=options.repeats), read, options.limit, threads=threads)


def step(options, threads, name, title):
    """Training steps of one process; with one thread memory is read from the same runs."""
    memory = threads == 1
    read = of_step(name, memory)
    ours = Command("Convoy", step_command(options, options.work.batch, threads), read, options.limit)
    peers = [step_peer(options, variant, threads, read) for variant in options.variants]
    rows = [Row(name, title, "images/s", "Convoy", options.variants, facts=("share_of_peak",))]
    if memory:
        rows.append(Row("memory", "peak memory of that step", "MB", "Convoy", options.variants, less_is_better=True))
    settings = f"ResNet-50, {options.work.image} px, batch {options.work.batch}, float32, SGD with momentum"
    return Comparison(name, settings, (ours, *peers), tuple(rows), cores=threads)


def ddp(options):
    """Two ranks against PyTorch's, and against one of ours: the same images a step for all."""
    work = options.work
    one = step_command(options, work.ddp_batch, 1)
    two = [options.mpirun, "--bind-to", "none", "-n", "2", *one]
    sides = (
        Command("Convoy", two, reads("ddp", "ddp-scaling"), options.limit),
        Script("DDP", options.python, "ddp.py", flags(batch=work.ddp_batch, size=work.image, repeats=options.repeats),
               reads("ddp"), options.limit, ranks=2),
        Command("one rank of Convoy", one, reads("ddp-scaling"), options.limit))
    rows = (Row("ddp", "data parallel, 2 ranks", "images/s", "Convoy", ("DDP",)),
            Row("ddp-scaling", "data parallel, 2 ranks against 1", "images/s", "Convoy", ("one rank of Convoy",)))
    settings = f"ResNet-50, {work.image} px, {work.ddp_batch} images a step over all ranks, float32, 1 thread a rank"
    return Comparison("ddp", settings, sides, rows, cores=2)


def of_split(lines):
    best = max((line for line in lines if line.get("mode") == "pipeline"), key=lambda line: line["images_per_s"])
    found = {"pipeline": best["images_per_s"]}
    if best.get("share_of_ceiling") is not None:
        found["share_of_ceiling"] = best["share_of_ceiling"]
    return found


def pipeline(options):
    work = options.work
    command = [options.convoy, "bench", "split", "--json", *flags(
        model="resnet50", image_size=work.split_image, batch=work.split_batch, splits=work.split, loss="mse",
        devices="cpu:0,cpu:1", threads=1, repeats=options.repeats)]
    sides = (Command("Convoy", command, of_split, options.limit),
             Script("GPipe", options.python, "pipeline.py", flags(
                 batch=work.split_batch, size=work.split_image, split=work.split, modes="pipeline",
                 repeats=options.repeats), reads("pipeline"), options.limit, ranks=2))
    row = Row("pipeline", "pipelined, 2 workers", "images/s", "Convoy", ("GPipe",), facts=("share_of_ceiling",))
    settings = (f"ResNet-50, {work.split_image} px, {work.split_batch} images a step in micro-batches of {work.split}, "
                "float32, 1 thread a worker")
    return Comparison("pipeline", settings, sides, (row,), cores=2)


def of_sums(lines):
    """Of our lines only those of our ring: the MPI library is measured in a program of its own."""
    return {f"allreduce-{line['bytes']}": line["bus_gb_s"] for line in lines if line.get("impl", "ring") == "ring"}


def allreduce(options):
    sizes = ",".join(map(str, options.work.bytes))
    ranks = [options.mpirun, "--bind-to", "none", "-n", "2"]
    ours = [options.convoy, "bench", "allreduce", "--json", "--bytes", sizes]
    sides = (Command("Convoy", ranks + ours, of_sums, options.limit),
             Command("Open MPI", [*ranks, options.allreduce, sizes], of_sums, options.limit),
             Script("Gloo", options.python, "allreduce.py", ["--bytes", sizes], of_sums, options.limit, ranks=2))
    rows = tuple(Row(f"allreduce-{size}", f"all-reduce of {SIZES[size]}, 2 ranks", "GB/s", "Convoy",
                     ("Open MPI", "Gloo")) for size in options.work.bytes)
    return Comparison("allreduce", "float32 sums, bus bandwidth, medians of 15 in each turn", sides, rows, cores=2)


def data(options):
    """Both on the first core alone."""
    core = {min(os.sched_getaffinity(0))}
    command = [options.convoy, "bench", "data", "--json", *flags(
        data="folder:" + options.data, image_size=224, batch=32, loader_threads=1, repeats=2)]
    sides = (Command("Convoy", command, reads("data"), options.limit, core),
             Script("torchvision", options.python_vision, "loader.py", [os.path.join(options.data, "train")],
                    reads("data"), options.limit, cores=core))
    row = Row("data", "loader, 1 core", "images/s", "Convoy", ("torchvision",))
    return Comparison("data", "500 x 375 JPEG files, random resized crop to 224, flip, normalisation, batches of 32",
                      sides, (row,))


def step_1(options):
    return step(options, 1, "step-1", "training step, 1 thread")


def step_2(options):
    return step(options, 2, "step-2", "training step, 2 threads")


def memory(options):
    """Read beside the speed of one thread: a row of step-1."""
    return step_1(options)


GROUPS = {"step-1": step_1, "step-2": step_2, "memory": memory, "ddp": ddp, "pipeline": pipeline,
          "allreduce": allreduce, "data": data}
CORES = {"step-1": 1, "step-2": 2, "memory": 1, "ddp": 2, "pipeline": 2, "allreduce": 2, "data": 1}
