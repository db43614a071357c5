"""Makes FOLDER/train/c0..c3 and FOLDER/val/c0..c3 of 500 x 375 JPEG files, from a fixed seed: smooth noise with grain.

    python make_jpegs.py FOLDER [--images 600]          needs PIL and numpy, which come with torchvision
"""
import argparse
import os

import numpy
from PIL import Image

WIDTH, HEIGHT, QUALITY, CLASSES = 500, 375, 90, 4


def picture(random):
    """Patches, blown up, and a grain: about the bytes of a photograph of that size."""
    patches = random.integers(0, 256, (24, 32, 3), dtype=numpy.uint8)
    smooth = numpy.asarray(Image.fromarray(patches).resize((WIDTH, HEIGHT), Image.BICUBIC)).astype(numpy.int16)
    grained = smooth + random.integers(-14, 15, smooth.shape)
    return Image.fromarray(grained.clip(0, 255).astype(numpy.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--images", type=int, default=600)
    args = parser.parse_args()
    random = numpy.random.default_rng(0)
    for part, count in (("train", args.images), ("val", CLASSES)):
        for k in range(count):
            folder = os.path.join(args.folder, part, f"c{k % CLASSES}")
            os.makedirs(folder, exist_ok=True)
            picture(random).save(os.path.join(folder, f"{k}.jpg"), quality=QUALITY)


if __name__ == "__main__":
    main()
