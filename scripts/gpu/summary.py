#!/usr/bin/env python3
"""A results folder of scripts/gpu_check as readable tables, on stdout.

Usage: summary.py FOLDER
"""
import glob
import json
import os
import sys


def lines_of(path):
    """The objects of a file of JSON lines; lines that a stopped part left unfinished are passed over."""
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def read(folder):
    names = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    return {os.path.basename(name).removesuffix(".jsonl"): lines_of(name) for name in names}


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def scaled(value, unit):
    if unit == "bytes/s":
        return f"{value / 1e9:.1f} GB/s"
    if unit == "FLOP/s":
        return f"{value / 1e12:.1f} TFLOP/s"
    return f"{value * 1e6:.2f} us"


def parts(results):
    yield "## Parts"
    yield from table(["part", "status", "seconds", "why"],
                     [(p["part"], p["status"], p["seconds"], p["why"]) for p in results.get("parts", [])])


def machine(results):
    yield "## Machine"
    for line in results.get("versions", []):
        yield "- " + ", ".join(f"{key} {value}" for key, value in (line.get("gpu") or line).items()
                               if not isinstance(value, (dict, list)) or key == "nccl")
    yield ""


def ceilings(results):
    found = results.get("ceilings", [])
    if found:
        yield "## Ceilings"
        yield from table(["what", "value"], [(c["ceiling"], scaled(c["value"], c["unit"])) for c in found])


def steps(results):
    rows = []
    for name in sorted(results):
        for line in results[name]:
            if line.get("bench") == "step":
                rows.append((f"convoy, {name.removeprefix('step_')}", line.get("batch"), f"{line['images_per_s']:.1f}"))
            if "torch" in line and "images_per_s" in line:
                rows.append((f"PyTorch, {line['torch']}", line["batch"], f"{line['images_per_s']:.1f}"))
    if rows:
        yield "## Training steps, images/s"
        yield from table(["what", "batch", "images/s"], rows)


def kernel_rows(lines):
    for k in lines:
        vendor = f"{k['vendor_s'] * 1e6:.1f}" if k.get("vendor_s") else "-"
        yield (k["name"], k.get("shape", ""), k.get("count", ""), f"{k['seconds'] * 1e6:.1f}",
               f"{k['limit_s'] * 1e6:.1f}", f"{100 * k['share_of_limit']:.0f} %", vendor)


def kernels(results):
    for name in sorted(results):
        found = [line for line in results[name] if line.get("bench") == "kernels" and "share_of_limit" in line]
        if found:
            yield f"## Kernels, {name.removeprefix('kernels_')}"
            yield from table(["kernel", "shape", "n", "us", "limit us", "share", "vendor us"], kernel_rows(found))


def sums(results):
    found = [line for lines in results.values() for line in lines if line.get("bench") == "allreduce"]
    if found:
        yield "## All-reduce"
        yield from table(["impl", "ranks", "bytes", "median us", "GB/s"],
                         [(s["impl"], s["ranks"], s["bytes"], f"{s['median_s'] * 1e6:.1f}", f"{s['bus_gb_s']:.2f}")
                          for s in found])


def stages(results):
    for name in sorted(results):
        for line in results[name]:
            if line.get("type") == "verify":
                found = "the bits of one device" if line["bitwise"] else f"differs at {line['first_layer']}"
                yield f"Two stages ({name}): {found}\n"


def splits(results):
    found = [line for lines in results.values() for line in lines if line.get("bench") == "split" and "mode" in line]
    if found:
        yield "## Splitting"
        keys = ["mode", "split", "schedule", "images_per_s"]
        yield from table(keys, [[row.get(key, "") for key in keys] for row in found])


def main(folder):
    results = read(folder)
    print("# Results of scripts/gpu_check\n")
    for section in (parts, machine, ceilings, steps, sums, stages, splits, kernels):
        for line in section(results):
            print(line)


if __name__ == "__main__":
    main(sys.argv[1])
