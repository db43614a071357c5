"""The #include lines of the tree, as check_layers.py and lint.py read them."""
import os
import re

SUFFIXES = (".h", ".hpp", ".cuh", ".cpp", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SKIPPED_FOLDERS = re.compile(r"^(build.*|runs|subprojects|\..*)$")


def sources(root):
    """Paths of all C++ and CUDA files below `root`, from `root`, sorted; build folders are left out."""
    found = []
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if not SKIPPED_FOLDERS.match(name)]
        for name in files:
            if name.endswith(SUFFIXES):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def includes(root, path):
    """(line number, file, quoted) of each #include in `path`; `quoted` is true for "file", false for <file>."""
    found = []
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                found.append((number, match.group(1) or match.group(2), match.group(1) is not None))
    return found
