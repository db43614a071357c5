#!/usr/bin/env python3
"""Reads the #include lines and fails on an arrow that the design does not have.

    kernels <- comm <- engine <- models <- bench <- cli        tests and examples may include all

Usage: check_layers.py [ROOT]
Rules: a layer includes itself and what stands left of it; inside kernels and engine the finer table below
holds; a file of ours is named from the root of the tree, in quotes; each vendor header has one place.
"""
import fnmatch
import os
import sys

from includes import includes, sources

LAYERS = ["kernels", "comm", "engine", "models", "bench", "cli"]
EVERYTHING = ["tests", "examples"]  # these may include all layers, and vendor headers
PUBLIC = "include"  # the installed header convoy/convoy.h: all layers but bench and cli

# Parts of a layer: what each may include of its own layer, besides itself. Tensor comes first, the network's
# words grow from it; data and io read and write files and know no tensor; train sees all.
NETWORK = ["tensor", "autograd", "ops", "nn"]
PARTS = {
    "engine": {
        "tensor": [],
        "autograd": NETWORK[:1],
        "ops": NETWORK[:2],
        "nn": NETWORK[:3] + ["io"],  # weights in and out
        "optim": NETWORK,
        "io": [],
        "data": ["io"],
        "parallel": NETWORK + ["optim"],
        "train": NETWORK + ["optim", "io", "data", "parallel"],
    },
    "kernels": {
        "base": [""],  # the list of kernels and of backends, but no backend
    },
}

# Header pattern -> the paths that may include it.
VENDORS = {
    "cuda*.h": ["kernels/cuda/*", "kernels/emulator/*"],
    "cuda*.hpp": ["kernels/cuda/*", "kernels/emulator/*"],
    "cublas*": ["kernels/cuda/*"],
    "cudnn*": ["kernels/cuda/*"],
    "mpi.h": ["comm/mpi*", "comm/world*", "bench/peers/*"],
    "nccl.h": ["comm/nccl*"],
    "oneapi/dnnl*": ["kernels/cpu/*"],
    "dnnl*": ["kernels/cpu/*"],
    "cblas*.h": ["kernels/cpu/*"],
}


def may_include_layer(layer, target):
    if layer in EVERYTHING:
        return True
    if layer == PUBLIC:
        return target in LAYERS[:4]
    return LAYERS.index(target) <= LAYERS.index(layer)


def part_of(path):
    """The folder below the layer, "" for a file that stands in the layer's own folder."""
    pieces = path.split("/")
    return pieces[1] if len(pieces) > 2 else ""


def part_fault(path, target):
    """Why a file may not include another one of its own layer, or None."""
    layer = path.split("/")[0]
    table = PARTS.get(layer, {})
    part, wanted = part_of(path), part_of(target)
    if part == wanted or part not in table or wanted in table[part]:
        return None
    allowed = ", ".join(f"{layer}/{name}".rstrip("/") for name in [*table[part], part])
    return f"{layer}/{part} may include of its own layer only {allowed}"


def vendor_fault(path, target):
    if path.split("/")[0] in EVERYTHING:
        return None
    for pattern, places in VENDORS.items():
        if fnmatch.fnmatch(target, pattern) and not any(fnmatch.fnmatch(path, p) for p in places):
            return f"this vendor header may stand only in {', '.join(places)}"
    return None


def include_fault(root, path, target, quoted):
    """Why `path` may not include `target`, or None."""
    layer, target_layer = path.split("/")[0], target.split("/")[0]
    if target_layer in LAYERS and not quoted and os.path.exists(os.path.join(root, target)):
        return "a file of ours is included in quotes"
    if target_layer in LAYERS and os.path.exists(os.path.join(root, target)):
        if not may_include_layer(layer, target_layer):
            return f"{layer} may not include {target_layer} (kernels <- comm <- engine <- models <- bench <- cli)"
        return part_fault(path, target) if layer == target_layer else None
    if target_layer in EVERYTHING and layer not in EVERYTHING:
        return f"{layer} may not include {target_layer}"
    fault = vendor_fault(path, target)
    if fault is None and quoted and not os.path.exists(os.path.join(root, target)):
        return "no such file from the root of the tree"
    return fault


def faults(root):
    """All faults below `root`, one text each."""
    known = set(LAYERS + EVERYTHING + [PUBLIC])
    found = []
    for path in sources(root):
        if path.split("/")[0] not in known:
            found.append(f"{path}: stands in no folder of the design")
            continue
        for number, target, quoted in includes(root, path):
            fault = include_fault(root, path, target, quoted)
            if fault:
                found.append(f'{path}:{number}: includes {target}: {fault}')
    return found


def main(arguments):
    root = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found = faults(os.path.normpath(root))
    for text in found:
        print(text)
    print(f"{len(sources(root))} files, {len(found)} wrong includes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
