"""idx_to_png.py on a made-up idx pair, plain and gzipped; the PNG is read back chunk by chunk."""
import gzip
import os
import struct
import sys
import tempfile
import unittest
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import idx_to_png  # noqa: E402

PIXELS = bytes(range(2 * 3 * 4))  # two images of 3 rows and 4 columns
IMAGES = struct.pack(">4I", 2051, 2, 3, 4) + PIXELS
LABELS = struct.pack(">2I", 2049, 2) + bytes([7, 9])


class IdxToPng(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, data):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_picks_the_image_and_its_label(self):
        for pack in (bytes, gzip.compress):
            images, labels = self.write("images", pack(IMAGES)), self.write("labels", pack(LABELS))
            self.assertEqual(idx_to_png.image(images, 1), (3, 4, PIXELS[12:]))
            self.assertEqual(idx_to_png.label(labels, 1), 9)

    def test_writes_a_grey_png(self):
        data = idx_to_png.png(3, 4, PIXELS[:12])
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(data):
            size, = struct.unpack(">I", data[at:at + 4])
            kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + size]
            self.assertEqual(struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0], zlib.crc32(kind + body))
            chunks[kind] = body
            at += size + 12
        self.assertEqual(chunks[b"IHDR"], struct.pack(">2I5B", 4, 3, 8, 0, 0, 0, 0))
        lines = zlib.decompress(chunks[b"IDAT"])
        self.assertEqual(lines, b"".join(b"\0" + PIXELS[row * 4:row * 4 + 4] for row in range(3)))

    def test_refuses_what_is_not_there(self):
        images, labels = self.write("images", IMAGES), self.write("labels", LABELS)
        for wrong in (lambda: idx_to_png.image(images, 2), lambda: idx_to_png.label(labels, -1),
                      lambda: idx_to_png.image(labels, 0), lambda: idx_to_png.label(images, 0)):
            self.assertRaises(SystemExit, wrong)


if __name__ == "__main__":
    unittest.main()
