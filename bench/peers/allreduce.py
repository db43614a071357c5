"""PyTorch beside `convoy bench allreduce`: all-reduce over Gloo, one core a rank, a line of JSON for each size.

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 allreduce.py --bytes 4000,1000000,25000000,100000000
A turn measures all sizes, each `--repeats` times.
"""
import argparse
import statistics
import time

import torch
import torch.distributed as dist

import turns

WARM_UP = 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", default="4000,64000,1000000,25000000,100000000")
    turns.add_flags(parser, repeats=15)
    return parser.parse_args()


def time_once(values):
    values.fill_(1)
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(values)
    return time.perf_counter() - start


def measure(size, repeats, ranks):
    """A line: the median over the rounds of the slowest rank's seconds."""
    values = torch.empty(size // 4)
    seconds = torch.tensor([time_once(values) for _ in range(WARM_UP + repeats)][WARM_UP:], dtype=torch.float64)
    if not torch.all(values == ranks):
        raise SystemExit(f"allreduce.py: {size} bytes: wrong sums, expected {ranks} everywhere")
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    median = statistics.median(seconds.tolist())
    return {"peer": "gloo, pytorch " + torch.__version__, "ranks": ranks, "bytes": size, "median_s": median,
            "bus_gb_s": 2 * (ranks - 1) / ranks * size / median / 1e9}


def main():
    args = parse()
    rank, ranks = turns.join()
    sizes = [int(size) for size in args.bytes.split(",")]
    turns.answer(args, lambda: [measure(size, args.repeats, ranks) for size in sizes], speaks=rank == 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
