#!/usr/bin/env python3
"""The rate of large products by cuBLASLt, through PyTorch, on random data (zeros would run faster)."""
import json
import sys

SIZE = 8192


def rate(torch, dtype, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a = torch.randn(SIZE, SIZE, device="cuda").to(dtype)
    b = torch.randn(SIZE, SIZE, device="cuda").to(dtype)
    times = []
    for i in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            a @ b
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(begin.elapsed_time(end) / 5)
    return 2 * SIZE**3 / min(times) * 1e3


def main():
    try:
        import torch
    except ImportError as error:
        print(f"no PyTorch: {error}", file=sys.stderr)
        return 1
    for name, dtype, tf32 in (("bf16", torch.bfloat16, False), ("tf32", torch.float32, True),
                              ("fp32", torch.float32, False)):
        print(json.dumps({"ceiling": f"product {SIZE}^3 {name} by cuBLASLt", "value": rate(torch, dtype, tf32),
                          "unit": "FLOP/s"}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
