"""How a peer measures: a few times and the median, or turn by turn as bench/compare asks for it.

With `--turns` the process stays: it says {"ready": true} when it is warm, then measures for each line on stdin,
and ends with stdin. So two programs can take turns without paying for imports and compilation each time.
"""
import json
import os
import statistics
import sys


def add_flags(parser, repeats):
    parser.add_argument("--repeats", type=int, default=repeats, help=f"measure N times, tell the median ({repeats})")
    parser.add_argument("--turns", action="store_true", help="measure for each line on stdin")


def say(lines, speaks):
    if speaks:
        print("\n".join(json.dumps(line) for line in lines), flush=True)


def answer(args, lines_of_turn, speaks=True):
    """`lines_of_turn()` measures and gives a list of lines; a turn ends with {"done": true}."""
    if not args.turns:
        say(lines_of_turn(), speaks)
        return
    say([{"ready": True}], speaks)
    for _ in sys.stdin:
        say(lines_of_turn() + [{"done": True}], speaks)


def measure(args, once, line_of, speaks=True):
    """`once()` gives seconds and is called a first time to warm up; `line_of(seconds)` gives what is printed."""
    once()
    answer(args, lambda: [line_of(statistics.median([once() for _ in range(args.repeats)]))], speaks)


def pin(rank):
    """This process to a core of its own, one of those that it may use."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})


def join():
    """Joins the group over Gloo that torchrun has started, with one thread on a core of its own: rank and ranks."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pin(dist.get_rank())
    return dist.get_rank(), dist.get_world_size()
