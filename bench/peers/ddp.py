"""PyTorch beside `mpirun -n 2 convoy bench step`: ResNet-50 data parallel over Gloo, one core a rank.

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 ddp.py --batch 32 --size 224
The batch is that of all ranks together. Rank 0 prints a line of JSON.
"""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn

import turns
from resnet import resnet50_layers


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    turns.add_flags(parser, repeats=3)
    return parser.parse_args()


def make_step(batch, size):
    torch.manual_seed(0)
    module = nn.Sequential(*resnet50_layers()).to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(module)
    x = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    def step():
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), y).backward()
        optimizer.step()
        dist.barrier()
        return time.perf_counter() - start

    return step


def main():
    args = parse()
    rank, ranks = turns.join()
    turns.measure(args, make_step(args.batch // ranks, args.size), lambda seconds: {
        "peer": "pytorch " + torch.__version__, "ranks": ranks, "batch": args.batch, "size": args.size,
        "images_per_s": args.batch / seconds}, speaks=rank == 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
