"""PyTorch beside `convoy bench step`: ResNet-50 training steps on the CPU, one line of JSON for each variant.

    python step.py --threads 1 --batch 16 --size 224 --variants eager,channels_last,compile
"""
import argparse
import resource
import time

import torch
import torch.nn as nn

import turns
from resnet import resnet50_layers


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--variants", default="eager,channels_last,compile")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    turns.add_flags(parser, repeats=3)
    return parser.parse_args()


def make_step(args, variant):
    """A function that does one step and gives its seconds."""
    torch.manual_seed(0)
    model = nn.Sequential(*resnet50_layers(args.classes))
    x, y = torch.randn(args.batch, 3, args.size, args.size), torch.randint(0, args.classes, (args.batch,))
    if variant != "eager":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if variant == "compile":
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    def step():
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return time.perf_counter() - start

    return step


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    for variant in args.variants.split(","):
        if variant not in ("eager", "channels_last", "compile"):
            raise SystemExit(f"step.py: --variants: '{variant}' is unknown, expected eager, channels_last or compile")
        turns.measure(args, make_step(args, variant), lambda seconds, name=variant: {
            "peer": "pytorch " + torch.__version__, "variant": name, "threads": args.threads, "batch": args.batch,
            "size": args.size, "images_per_s": args.batch / seconds, "peak_rss_mb": peak_rss_mb()})


if __name__ == "__main__":
    main()
