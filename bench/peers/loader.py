"""torchvision beside `convoy bench data`: ImageFolder, RandomResizedCrop(224), flip, tensor, normalisation.

    python loader.py FOLDER [--workers 0]          FOLDER/class/*.jpg
Whole epochs; the first one, which fills the page cache, is not counted. Prints a line of JSON.
"""
import argparse
import time

import torch
import torchvision
from torchvision import transforms

import turns


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=32)
    turns.add_flags(parser, repeats=1)
    return parser.parse_args()


def make_loader(args):
    change = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    images = torchvision.datasets.ImageFolder(args.folder, change)
    return torch.utils.data.DataLoader(images, args.batch, shuffle=True, num_workers=args.workers)


def main():
    args = parse()
    torch.set_num_threads(1)
    loader = make_loader(args)
    count = len(loader.dataset)

    def epoch():
        start = time.perf_counter()
        for _batch in loader:
            pass
        return time.perf_counter() - start

    turns.measure(args, epoch, lambda seconds: {
        "peer": "torchvision " + torchvision.__version__, "workers": args.workers, "images": count,
        "images_per_s": count / seconds})


if __name__ == "__main__":
    main()
