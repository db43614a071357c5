#!/usr/bin/env python3
"""Training steps of ResNet-50 in PyTorch for the comparison: channels last, bf16 autocast, eager and compiled.

The network stands here, for torchvision may not be installed. A line of JSON for each way.
Usage: torch_step.py --device cuda|cpu --model resnet50|toy --batch N --steps N [--image-size 224]
"""
import argparse
import json
import statistics
import sys
import time


def make_networks(torch):
    nn = torch.nn

    def conv(c, k, size, stride=1):
        return nn.Conv2d(c, k, size, stride, padding=(size - 1) // 2, bias=False)

    class Bottleneck(nn.Module):
        def __init__(self, c, middle, stride):
            super().__init__()
            k = 4 * middle
            self.branch = nn.Sequential(conv(c, middle, 1), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
                                        conv(middle, middle, 3, stride), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
                                        conv(middle, k, 1), nn.BatchNorm2d(k))
            same = stride == 1 and c == k
            self.skip = nn.Identity() if same else nn.Sequential(conv(c, k, 1, stride), nn.BatchNorm2d(k))

        def forward(self, x):
            return torch.relu(self.branch(x) + self.skip(x))

    def resnet50(blocks=(3, 4, 6, 3), width=64, classes=1000):
        layers = [conv(3, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        c = width
        for stage, count in enumerate(blocks):
            for i in range(count):
                middle = width << stage
                layers.append(Bottleneck(c, middle, 2 if stage > 0 and i == 0 else 1))
                c = 4 * middle
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, classes))

    return {"resnet50": resnet50, "toy": lambda: resnet50((1, 1), 8, 10)}


def measure(torch, options, network, images, labels, dtype):
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype, enabled=dtype != torch.float32):
            loss = loss_of(network(images), labels)
        loss.backward()
        optimizer.step()

    def finish():
        if options.device == "cuda":
            torch.cuda.synchronize()

    for _ in range(min(options.steps, 5)):
        step()
    finish()
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        finish()
        seconds.append(time.perf_counter() - start)
    return seconds


def ways(torch, options):
    yield "bf16 eager", torch.bfloat16, False, False
    if options.device == "cuda":
        yield "bf16 compiled", torch.bfloat16, True, False
        yield "tf32 eager", torch.float32, False, True
        yield "fp32 eager", torch.float32, False, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--model", choices=["resnet50", "toy"], required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--image-size", type=int, default=224)
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch: {error}", file=sys.stderr)
        return 77
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    make = make_networks(torch)[options.model]
    size = options.image_size
    images = torch.randn(options.batch, 3, size, size, device=options.device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(options.batch, device=options.device) % 10
    for name, dtype, compiled, tf32 in ways(torch, options):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        network = make().to(options.device, memory_format=torch.channels_last).train()
        network = torch.compile(network) if compiled else network
        seconds = measure(torch, options, network, images, labels, dtype)
        print(json.dumps({"torch": name, "model": options.model, "batch": options.batch,
                          "images_per_s": options.batch / statistics.median(seconds), "seconds": seconds}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
