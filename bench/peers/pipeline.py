"""PyTorch beside `convoy bench split`: ResNet-50 in two stages, one core standing for one device.

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 pipeline.py --batch 120 --size 128 --split 12 --modes pipeline
Modes: single (rank 0 alone), model_parallel (one micro-batch), pipeline. `--cut 8` is the cut before layer3: stem and
seven blocks first. Rank 0 prints a line of JSON for each mode.
"""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import turns
from resnet import resnet50_layers

SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--split", type=int, default=12, help="images of a micro-batch (12)")
    parser.add_argument("--cut", type=int, default=8, help="layers of the first stage (8)")
    parser.add_argument("--schedule", choices=sorted(SCHEDULES), default="GPipe")
    parser.add_argument("--modes", default="single,model_parallel,pipeline")
    turns.add_flags(parser, repeats=3)
    return parser.parse_args()


def make_data(args):
    torch.manual_seed(0)
    x = torch.randn(args.batch, 3, args.size, args.size)
    target = torch.zeros(args.batch, 1000).scatter_(1, torch.randint(0, 1000, (args.batch, 1)), 1)
    return x, target


def timed(optimizer, forward_and_backward):
    def step():
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad()
        forward_and_backward()
        optimizer.step()
        dist.barrier()
        return time.perf_counter() - start

    return step


def make_single(args, rank):
    x, target = make_data(args)
    model, loss_of = nn.Sequential(*resnet50_layers()), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return timed(optimizer, lambda: loss_of(model(x), target).backward() if rank == 0 else None)


def make_staged(args, rank, micro_batches):
    x, target = make_data(args)
    layers = resnet50_layers()
    module = nn.Sequential(*(layers[:args.cut] if rank == 0 else layers[args.cut:]))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.001)
    stage = PipelineStage(module, rank, 2, torch.device("cpu"))
    kind = SCHEDULES[args.schedule if micro_batches > 1 else "GPipe"]
    schedule = kind(stage, n_microbatches=micro_batches, loss_fn=nn.MSELoss())
    return timed(optimizer, lambda: schedule.step(x) if rank == 0 else schedule.step(target=target))


def make_step(args, mode, rank):
    if mode == "single":
        return make_single(args, rank)
    if mode == "model_parallel":
        return make_staged(args, rank, 1)
    if mode == "pipeline":
        return make_staged(args, rank, args.batch // args.split)
    raise SystemExit(f"pipeline.py: --modes: '{mode}' is unknown, expected single, model_parallel or pipeline")


def main():
    args = parse()
    rank, _ = turns.join()
    for mode in args.modes.split(","):
        turns.measure(args, make_step(args, mode, rank), lambda seconds, name=mode: {
            "peer": "pytorch " + torch.__version__, "mode": name, "batch": args.batch, "size": args.size,
            "split": args.split if name == "pipeline" else args.batch, "schedule": args.schedule, "cut": args.cut,
            "images_per_s": args.batch / seconds}, speaks=rank == 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
