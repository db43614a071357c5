#!/usr/bin/env python3
"""Writes one grey image of an idx file (plain or gzipped) as PNG and prints its label.

Usage: idx_to_png.py IMAGES LABELS INDEX OUT.png
"""
import gzip
import struct
import sys
import zlib


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def image(path, index):
    """(rows, columns, pixels) of image `index` of an idx3-ubyte file."""
    data = read(path)
    magic, count, rows, columns = struct.unpack(">4I", data[:16].ljust(16, b"\0"))
    if magic != 2051 or not 0 <= index < count:
        raise SystemExit(f"{path}: no image {index} (magic {magic}, {count} images)")
    start = 16 + index * rows * columns
    return rows, columns, data[start:start + rows * columns]


def label(path, index):
    data = read(path)
    magic, count = struct.unpack(">2I", data[:8].ljust(8, b"\0"))
    if magic != 2049 or not 0 <= index < count:
        raise SystemExit(f"{path}: no label {index} (magic {magic}, {count} labels)")
    return data[8 + index]


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(rows, columns, pixels):
    """An 8-bit grey PNG."""
    header = struct.pack(">2I5B", columns, rows, 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + pixels[row * columns:(row + 1) * columns] for row in range(rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9))
            + chunk(b"IEND", b""))


def main(arguments):
    images, labels, index, out = arguments
    with open(out, "wb") as file:
        file.write(png(*image(images, int(index))))
    print(label(labels, int(index)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
