#!/usr/bin/env python3
"""What the compiler made of the GPU kernels, read from the objects of the build: no GPU is needed.

Usage: static_gates.py [--write] [--root FOLDER] [--archs 80,90a] --nvcc NVCC TABLE OBJECT...
Every kernel of OBJECT (host objects with device code in them) must
  - be there for each architecture,
  - have no stack frame and load or store no local memory (so nothing spills), unless LOCAL_MEMORY allows it,
  - need the registers and the static shared memory that TABLE says, where TABLE was written for the same release of
    nvcc (another release chooses other registers); --write writes TABLE anew,
  - hold the instructions that INSTRUCTIONS asks of kernels of its name.
cuobjdump and nvdisasm are looked for on PATH, beside nvcc, and in Python packages of this Python and of FOLDER.
Exit code: 0, 1 with a line for each finding, 77 without these tools.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

# Kernels that may use local memory, and why. A start of the name, as in the table.
LOCAL_MEMORY = {}

# Kernels (a pattern of the name) and instructions that each of their codes must hold.
INSTRUCTIONS = {
    r"^mma_kernel<": ["HMMA", "LDGSTS"],  # tensor cores, cp.async
    # ldmatrix; it transposes 16-bit values alone, so TF32 weight gradients, transposed twice, go without.
    r"^mma_kernel<(?!float, .*DenseColumns<float)": ["LDSM"],
    r"^simt_kernel<.*Product": ["FFMA"],
}

COUNTED = ["HMMA", "LDSM", "LDGSTS", "FFMA", "LDL", "STL"]


def find_tools(root):
    """The folder of cuobjdump (with nvdisasm on the path it gets), or None."""
    places = os.environ.get("PATH", "").split(":") + ["/usr/local/cuda/bin"]
    for base in [root, sys.prefix]:
        places += sorted(glob.glob(os.path.join(base, "lib/python3*/site-packages/nvidia/*/bin"))) if base else []
    for place in places:
        if all(shutil.which(tool, path=place) for tool in ("cuobjdump", "nvdisasm")):
            return place
    return None


def cuobjdump(tools, mode, path):
    environment = dict(os.environ, PATH=tools + ":" + os.environ.get("PATH", ""))
    done = subprocess.run([os.path.join(tools, "cuobjdump"), mode, path], env=environment, capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"cuobjdump {mode} {path}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def demangle(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.split("\n")))


def without_arguments(name):
    """`f<g(int)>(a, b)` -> `f<g(int)>`: the last parentheses outside of angle brackets go."""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[i], 0)
        if name[i] == "(" and depth == 0:
            return name[:i]
    return name


def short_name(demangled):
    """`void convoy::cuda::(anonymous namespace)::f<convoy::Bf16, 8>(...)` -> `f<Bf16, 8>`."""
    name = demangled.replace("(anonymous namespace)::", "")
    name = re.sub(r"\b(?:convoy::)?(?:cuda::)?", "", without_arguments(name))
    return re.sub(r"\((?:unsigned )?(?:int|bool|char|[A-Z]\w*)\)(?=-?\d)", "", name.removeprefix("void ")).strip()


def resource_usage(text):
    """(arch, mangled name) -> {REG: .., STACK: .., SHARED: .., LOCAL: ..} of `cuobjdump -res-usage`."""
    found, arch, name = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"arch = sm_(\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function (\S+):$", line):
            name = match[1]
        elif name and "REG:" in line:
            found[arch, name] = {key: int(value) for key, value in re.findall(r"([A-Z]+):(\d+)", line)}
            name = None
    return found


def instruction_counts(text):
    """(arch, mangled name) -> {HMMA: ..} of `cuobjdump -sass`."""
    found, arch, counts = {}, None, None
    opcode = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z0-9]+)")
    for line in text.splitlines():
        if match := opcode.match(line):
            if counts is not None and match[1] in counts:
                counts[match[1]] += 1
        elif match := re.match(r"\s*code for sm_(\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function : (\S+)", line):
            counts = found.setdefault((arch, match[1]), dict.fromkeys(COUNTED, 0))
    return found


def read_kernels(tools, objects):
    """(short name, arch) -> usage and counts of all objects; one name in two files gets the file's name."""
    kernels = {}
    for path in objects:
        usage = resource_usage(cuobjdump(tools, "-res-usage", path))
        counts = instruction_counts(cuobjdump(tools, "-sass", path))
        names = demangle(sorted({name for _, name in usage}))
        file = os.path.basename(path).removesuffix(".cu.o")
        for (arch, mangled), values in usage.items():
            key = (file, short_name(names[mangled]), arch)
            if key in kernels:
                sys.exit(f"{path}: two kernels are called {key[1]}")
            kernels[key] = {**values, **counts.get((arch, mangled), {})}
    return kernels


def findings(kernels, archs):
    """What is wrong with the kernels, the table aside."""
    for file, name in sorted({key[:2] for key in kernels}):
        for arch in archs:
            if (file, name, arch) not in kernels:
                yield f"{file}: {name} is not compiled for sm_{arch}"
    for (file, name, arch), values in sorted(kernels.items()):
        where = f"{file}: {name}, sm_{arch}"
        if not any(name.startswith(allowed) for allowed in LOCAL_MEMORY):
            for key in ("STACK", "LOCAL", "LDL", "STL"):
                if values.get(key, -1) != 0:
                    yield f"{where}: {key} is {values.get(key, 'unknown')}, expected 0"
        for pattern, wanted in INSTRUCTIONS.items():
            for instruction in wanted if re.search(pattern, name) else []:
                if not values.get(instruction):
                    yield f"{where}: has no {instruction}"
    for pattern in INSTRUCTIONS:
        if not any(re.search(pattern, name) for _, name, _ in kernels):
            yield f"no kernel matches {pattern}: its instructions cannot be looked for"


def nvcc_release(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release (\d+\.\d+)", text)[1]


def table_text(kernels, archs, release):
    lines = ["# Registers a thread and static shared memory (bytes) of each kernel; static_gates.py --write writes this.",
             f"# nvcc {release}"]
    lines += ["# " + " ".join(f"sm_{arch}".rjust(12) for arch in archs) + "  kernel"]
    last = None
    for file, name in sorted({key[:2] for key in kernels}):
        if file != last:
            lines += ["", f"{file}.cu"]
            last = file
        cells = []
        for arch in archs:
            values = kernels.get((file, name, arch))
            cells.append((f"{values['REG']:4d} {values['SHARED']:7d}" if values else "-").rjust(12))
        lines.append("  " + " ".join(cells) + "  " + name)
    return "\n".join(lines) + "\n"


def table_rows(text):
    rows, file = {}, None
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            file = line.strip()
            continue
        cells, name = re.match(r"\s+((?:-|\d+ +\d+)(?: +(?:-|\d+ +\d+))*)  (.*)$", line).groups()
        rows[file, name] = " ".join(cells.split())
    return rows


def differences(stored, actual):
    stored, actual = table_rows(stored), table_rows(actual)
    for key in sorted(stored.keys() | actual.keys()):
        if stored.get(key) != actual.get(key):
            yield f"{key[0]}: {key[1]}: table {stored.get(key, 'has no such kernel')}, build {actual.get(key, 'has none')}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--root", default="")
    parser.add_argument("--archs", default="80,90a")
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("table")
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    tools = find_tools(options.root)
    if not tools:
        print("cuobjdump and nvdisasm are not here (pip install -r scripts/requirements.txt)")
        return 77
    archs = options.archs.split(",")
    kernels = read_kernels(tools, options.objects)
    found = list(findings(kernels, archs))
    release = nvcc_release(options.nvcc)
    text = table_text(kernels, archs, release)
    if options.write:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(text)
    with open(options.table, encoding="utf-8") as file:
        stored = file.read()
    same = f"# nvcc {release}\n" in stored
    moved = list(differences(stored, text)) if same else []
    if not same:
        print(f"not compared with the table, which is of another release: this is nvcc {release}")
    for line in found + moved:
        print(line)
    if moved:
        print(f"where that is meant: {sys.argv[0]} --write {options.table} OBJECT...")
    print(f"{len(kernels)} kernels (one for each architecture): {len(found) + len(moved)} findings")
    return 1 if found or moved else 0


if __name__ == "__main__":
    sys.exit(main())
