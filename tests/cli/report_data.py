"""Made-up metrics of a pipelined run, for tests of the report: every number is chosen here."""
import json
import math
import random

STATES = ("forward", "backward_input", "backward_weight", "recompute", "optimizer", "starved", "transfer", "slot_full",
          "all_reduce", "loader", "host")
SPLITS = (1, 3, 5, 8, 10, 12, 20, 40, 60)


def run_line(stages, replicas, **more):
    workers = stages * replicas
    return {"type": "run", "model": "resnet50", "classes": 10, "image-size": 32, "precision": "fp32", "bn": "micro",
            "data": "fashion-mnist", "batch": 64, "epochs": 4, "optimizer": "adamw", "lr": 0.001, "seed": 0,
            "devices": [f"cpu:{i}" for i in range(workers)], "replicas": replicas, "stages": str(stages), "cut": "layer3",
            "schedule": "1f1b", "micro-batches": 8, "parameters": 23528522, "world": workers,
            "device_names": ["AVX-512, 1 core"] * workers, "versions": {"convoy": "0.1.0", "onednn": "3.2"}, **more}


def step_lines(count, start=2.3, rate=35.0, seed=1):
    draw = random.Random(seed)
    for step in range(1, count + 1):
        loss = start * math.exp(-step / (count / 3)) + 0.3 + draw.gauss(0, 0.05)
        yield {"type": "step", "step": step, "epoch": 1 + 4 * (step - 1) // count, "loss": loss,
               "lr": 0.0005 * (1 + math.cos(math.pi * step / count)), "images": 64,
               "images_per_s": (rate / 3 if step == 1 else rate + draw.gauss(0, 1)), "grad_norm": 1 + abs(draw.gauss(0, 0.4))}
        if step % (count // 4) == 0:
            epoch = 4 * step // count
            yield {"type": "eval", "epoch": epoch, "loss": loss + 0.1, "top1": 0.6 + 0.07 * epoch, "top5": 0.9 + 0.02 * epoch,
                   "images": 10000}


def seconds_of(worker, scale):
    """Seconds in each state, of ten steps."""
    values = (3.1 + worker / 10, 3.3, 2.9, 0, 0.11, 0.9 - worker / 4, 0.21, 0.013, 0.07, 0.02 if worker == 0 else 0, 0.19)
    return {state: value * scale for state, value in zip(STATES, values)}


def bubble_line(stages, replicas):
    workers = []
    for worker in range(stages * replicas):
        seconds, predicted = seconds_of(worker, 1), seconds_of(worker, 0.97)
        wall = sum(seconds.values())
        workers.append({"worker": worker, "replica": worker // stages, "stages": [worker % stages], "seconds": seconds,
                        "shares": {state: value / wall for state, value in seconds.items()}, "predicted": predicted,
                        "peak_bytes": 300e6 - 40e6 * worker, "predicted_peak_bytes": 290e6 - 41e6 * worker})
    return {"type": "bubble", "steps": 10, "step_s": 1.08, "predicted_step_s": 1.05, "workers": workers}


def row_of(worker, stages, micro_batches, forward, backward):
    """A fill-drain row: [state, instruction, track, begin, end]; F, I and W of each micro-batch."""
    stage, row, now = worker % stages, [], (worker % stages) * forward
    if now > 0:
        row.append(["starved", f"RA {stage}.0", "receive", 0, now])
    for k in range(micro_batches):
        row.append(["forward", f"F {stage}.{k}", "compute", now, now + forward])
        now += forward
    begin = (micro_batches + stages - 1) * forward + (stages - 1 - stage) * backward
    if begin > now:
        row.append(["starved", f"RG {stage}.0", "receive", now, begin])
    now = begin
    for k in range(micro_batches):
        row.append(["backward_input", f"I {stage}.{k}", "compute", now, now + backward])
        row.append(["backward_weight", f"W {stage}.{k}", "compute", now + backward, now + 1.9 * backward])
        now += 1.9 * backward
    row.append(["optimizer", f"ST {stage}", "compute", now, now + 0.004])
    return row


def spans_line(stages, replicas, micro_batches):
    workers = [{"worker": worker, "replica": worker // stages,
                "measured": row_of(worker, stages, micro_batches, 0.031, 0.034),
                "predicted": row_of(worker, stages, micro_batches, 0.03, 0.033)} for worker in range(stages * replicas)]
    end = max(span[4] for worker in workers for span in worker["measured"])
    return {"type": "spans", "step": 7, "step_s": end, "clock_error_s": 2e-6, "all_workers": len(workers), "workers": workers}


def metrics(stages=2, replicas=1, micro_batches=8, steps=400, **settings):
    """All lines of a run."""
    return [run_line(stages, replicas, **settings), *step_lines(steps), spans_line(stages, replicas, micro_batches),
            bubble_line(stages, replicas), {"type": "end", "steps": steps, "seconds": 812.5, "weights_hash": "0123456789abcdef"}]


def split_rows():
    """Lines of `bench split --json`."""
    rows = [{"bench": "split", "model": "resnet50", "batch": 120, "cut": "auto", "splits": SPLITS, "workers": 2}]

    def add(mode, split, mean, **more):
        rows.append({"bench": "split", "mode": mode, "split": split, "micro_batches": -(-120 // split), "schedule": "",
                     "replicas": 1, "stages": 1, "cut": "", "seconds": [mean, 1.03 * mean, 0.97 * mean], "mean_s": mean,
                     "std_s": 0.03 * mean, "images_per_s": 120 / mean, "speed_up": 26 / mean, **more})

    add("single", 120, 26.0)
    add("model-parallel", 120, 27.2, schedule="fill-drain", stages=2, cut="layer3")
    add("data-parallel", 60, 14.1, micro_batches=1, replicas=2)
    for i, split in enumerate(SPLITS):
        single = 24 + 4 / split + abs(i - 4) * 0.3
        add("single", split, single)
        gain = 1.9 - abs(i - 4) * 0.07
        add("pipeline", split, single / gain, schedule="1f1b", stages=2, cut="layer3", speed_up_same_split=gain, ceiling=1.95,
            share_of_ceiling=gain / 1.95, bubble=0.1, bubble_predicted=0.09)
    rows.append({"bench": "split", "claim": "pipelining is fastest", "verdict": "holds", "ratio": 1.09, "row": "pipeline 10, 1f1b",
                 "against": "data-parallel 60", "transfer_share": 0.02})
    return rows


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path
