#!/usr/bin/env python3
"""What this machine has, a line of JSON each: GPU, driver and clocks, CUDA, PyTorch and its libraries."""
import json
import shutil
import subprocess


def tell(**members):
    print(json.dumps(members), flush=True)


def output(*command):
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.stdout.strip() if done.returncode == 0 else None


FIELDS = ["name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit",
          "temperature.gpu"]


def main():
    found = output("nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader")
    for line in (found or "").splitlines():
        tell(gpu=dict(zip(FIELDS, line.split(", "))))
    nvcc = output("nvcc", "--version")
    tell(nvcc=nvcc.splitlines()[-1] if nvcc else None)
    try:
        import torch
        tell(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(),
             nccl=list(torch.cuda.nccl.version()) if torch.cuda.is_available() else None)
    except ImportError as error:
        tell(torch=None, why=str(error))


if __name__ == "__main__":
    main()
