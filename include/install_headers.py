#!/usr/bin/env python3
"""Installs convoy/convoy.h and every header of ours that it needs, for `meson install`.

Usage: install_headers.py SOURCE_ROOT INCLUDE_DIR        INCLUDE_DIR is relative to the installation's prefix
In the tree a header is named from the root: "engine/tensor/tensor.h". Installed they all lie below convoy/ and
name each other "convoy/engine/tensor/tensor.h": one -I is enough, and a user's own engine/ is not in the way.
"""
import os
import re
import sys

OURS = re.compile(r'^(\s*#\s*include\s*")([^"]+)(")', re.M)
FIRST = "include/convoy/convoy.h"


def needed(root):
    """Text of each header, by its path from the root, of convoy.h and what it includes."""
    texts, waiting = {}, [FIRST]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()
        waiting += [name for _, name, _ in OURS.findall(texts[path])]
    return texts


def installed(path, text):
    """Where a header lies below the include folder, and its text there."""
    place = path.removeprefix("include/") if path == FIRST else "convoy/" + path
    return place, OURS.sub(r"\1convoy/\2\3", text)


def main(root, include_dir):
    target = os.path.join(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], include_dir)
    for path, text in sorted(needed(root).items()):
        place, text = installed(path, text)
        os.makedirs(os.path.dirname(os.path.join(target, place)), exist_ok=True)
        with open(os.path.join(target, place), "w", encoding="utf-8") as file:
            file.write(text)
        if not os.environ.get("MESON_INSTALL_QUIET"):
            print(f"Installing {path} to {os.path.join(target, os.path.dirname(place))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
