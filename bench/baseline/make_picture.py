#!/usr/bin/env python3
"""Writes picture.jpg: 500 x 375 pixels of smooth colour, edges and grain, much as a photograph has them.

Usage: make_picture.py OUT.jpg        (needs NumPy and Pillow; any version's file will do, baselines are of this one)
"""
import sys

import numpy
from PIL import Image

HEIGHT, WIDTH = 375, 500


def pixels():
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    channels = []
    for channel in range(3):
        value = 110 + 60 * numpy.sin(x / (31 + 7 * channel)) * numpy.cos(y / (23 + 5 * channel))
        value += 40 * ((x // 45 + y // 60) % 2) + 6 * random.standard_normal((HEIGHT, WIDTH))
        channels.append(value)
    return numpy.clip(numpy.stack(channels, axis=2), 0, 255).astype(numpy.uint8)


def main(arguments):
    (out,) = arguments
    Image.fromarray(pixels()).save(out, quality=85)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
