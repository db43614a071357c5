#include "cli/command.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/nearest.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

Command train_command() {
  return {"train",
          "[DIR]",
          "Trains a network and writes checkpoints and metrics.",
          {"convoy train --optimizer adamw --checkpoint run --log run.jsonl",
           "convoy train --model resnet18 --data folder:flowers --epochs 10 --resume auto "
           "--checkpoint run",
           "convoy train --data synthetic --steps 20 --batch 8"},
          {Group::model, Group::data, Group::optimization, Group::layout, Group::run},
          {"config", "json"},
          run_train};
}

Command eval_command() {
  return {"eval",
          "[DIR]",
          "Measures loss and accuracy of a trained network on validation images.",
          {"convoy eval --checkpoint run", "convoy eval --checkpoint run/step-938 --json",
           "convoy eval --weights resnet50.safetensors --data folder:imagenet --image-size 224"},
          {},
          {"model",
           "classes",
           "image-size",
           "precision",
           "weights",
           "data",
           "loader-threads",
           "bad-images",
           "max-pixels",
           "batch",
           "loss",
           "devices",
           "replicas",
           "stages",
           "cut",
           "schedule",
           "stages-per-worker",
           "micro-batch-size",
           "micro-batches",
           "threads",
           "device-memory",
           "comm",
           "comm-timeout",
           "checkpoint",
           "config",
           "json"},
          run_eval};
}

Command predict_command() {
  return {
      "predict",
      "FILE...",
      "Tells the five likeliest classes of images.",
      {"convoy predict --checkpoint run cat.png", "convoy predict --checkpoint run --json *.jpg",
       "convoy predict --weights resnet50.safetensors --logits cat.png"},
      {},
      {"model",
       "classes",
       "image-size",
       "precision",
       "weights",
       "max-pixels",
       "devices",
       "replicas",
       "stages",
       "cut",
       "schedule",
       "stages-per-worker",
       "micro-batch-size",
       "micro-batches",
       "threads",
       "device-memory",
       "comm",
       "comm-timeout",
       "checkpoint",
       "config",
       "json",
       "logits"},
      run_predict};
}

Command verify_command() {
  return {"verify",
          "[DIR]",
          "Trains a few steps in a layout and on one device and compares every bit.",
          {"convoy verify --devices cpu:0,cpu:1 --model resnet18 --data synthetic --batch 8",
           "convoy verify --devices cpu:0,cpu:1 --stages 2 --schedule zb-h1 --micro-batch-size 2",
           "mpirun -n 4 convoy verify --stages 2 --batch 16 --steps 5 --json"},
          {Group::model, Group::data, Group::optimization, Group::layout},
          {"comm-timeout", "kernels", "deterministic", "config", "json"},
          run_verify};
}

Command summary_command() {
  return {"summary",
          "",
          "Lists the layers of a network with shapes, parameters and multiply-adds.",
          {"convoy summary", "convoy summary --model resnet18 --classes 10 --image-size 32",
           "convoy summary --json"},
          {},
          {"model", "classes", "image-size", "config", "json"},
          run_summary};
}

Command convert_command() {
  return {
      "convert",
      "FROM TO.safetensors",
      "Writes the weights of a checkpoint or file with torchvision's names.",
      {"convoy convert run resnet50.safetensors", "convoy convert run/step-938 weights.safetensors",
       "convoy convert --model resnet18 from_torch.safetensors clean.safetensors"},
      {},
      {"model", "classes", "config", "json"},
      run_convert};
}

Command devices_command() {
  return {"devices",
          "",
          "Lists devices, library versions and what is wrong with this machine's set-up.",
          {"convoy devices", "convoy devices --json", "OMP_NUM_THREADS=1 convoy devices"},
          {},
          {"config", "json"},
          run_devices};
}

Command launch_command() {
  return {"launch",
          "-- COMMAND...",
          "Starts the ranks of a command through mpirun and leaves nothing running.",
          {"convoy launch -n 4 -- convoy train --checkpoint run",
           "convoy launch -n 16 --hosts hosts.txt --iface eth1 -- convoy train --checkpoint run",
           "convoy launch -n 4 --restarts 3 -- convoy train --checkpoint run --save-every 100"},
          {},
          {"ranks", "hosts", "iface", "restarts", "dry-run", "config"},
          run_launch};
}

Command report_command() {
  return {"report",
          "FILE.jsonl|DIR...",
          "Writes what the metrics of runs say as one HTML file; several runs are compared.",
          {"convoy report runs/first", "convoy report one.jsonl two.jsonl -o both.html",
           "convoy bench split --json > split.jsonl && convoy report split.jsonl"},
          {},
          {"output", "config", "json"},
          run_report};
}

Command plan_command() {
  return {
      "plan",
      "",
      "Finds the layout that trains a network fastest: replicas, stages, schedule, micro-batches.",
      {"convoy plan --devices cpu:0,cpu:1 --model resnet18 --image-size 64 --batch 16",
       "convoy plan --devices cpu:0,cpu:1 --stages 2 --schedule zb-h1 --json",
       "convoy plan --cluster examples/cluster-4096.toml --batch 32768"},
      {Group::layout},
      {"model", "classes", "image-size", "precision", "bn", "batch", "accumulate", "optimizer",
       "loss", "seed", "comm-timeout", "cluster", "config", "json"},
      run_plan};
}

Command bench_step_command() {
  return {"bench step",
          "",
          "Measures training steps on made-up images: images/s, share of the device's peak, time "
          "by op.",
          {"convoy bench step --model resnet50 --image-size 224 --batch 16 --threads 1",
           "convoy bench step --model resnet18 --image-size 32 --batch 64 --json",
           "convoy bench step --devices cpu:0,cpu:1 --model resnet50 --batch 32 --threads 1"},
          {},
          {"model", "classes", "image-size", "precision", "bn", "batch", "devices", "threads",
           "device-memory", "comm", "comm-timeout", "graph", "seed", "config", "json", "repeats"},
          run_bench_step};
}

Command bench_data_command() {
  return {"bench data",
          "",
          "Measures the loader alone: images/s of whole epochs.",
          {"convoy bench data", "convoy bench data --data folder:flowers --loader-threads 4",
           "convoy bench data --data synthetic:1000 --image-size 224 --json"},
          {Group::data},
          {"classes", "image-size", "batch", "seed", "config", "json", "repeats"},
          run_bench_data};
}

Command bench_allreduce_command() {
  return {"bench allreduce",
          "",
          "Measures sums over all workers: latency and bus bandwidth, beside the MPI library's.",
          {"mpirun -n 2 convoy bench allreduce", "convoy bench allreduce --devices cpu:0,cpu:1",
           "mpirun -n 4 convoy bench allreduce --bytes 4KiB,100MiB --json"},
          {},
          {"devices", "comm", "comm-timeout", "config", "json", "repeats", "bytes"},
          run_bench_allreduce};
}

Command bench_split_command() {
  return {"bench split",
          "",
          "Measures what splitting a network does: one device, model parallel, pipelined, data "
          "parallel.",
          {"convoy bench split --devices cpu:0,cpu:1 --threads 1 --batch 120 --image-size 128",
           "convoy bench split --devices cpu:0,cpu:1 --cut layer3 --splits 10,12,20 --loss mse",
           "mpirun -n 2 convoy bench split --threads 1 --batch 120 --image-size 128 --json"},
          {},
          {"model", "classes", "image-size", "precision", "bn", "batch", "loss", "devices", "cut",
           "threads", "device-memory", "comm", "comm-timeout", "seed", "config", "json", "repeats",
           "splits"},
          run_bench_split};
}

Command bench_kernels_command() {
  return {"bench kernels",
          "",
          "Measures each kernel of a step of ResNet-50; on emu:K, how it uses memory.",
          {"convoy bench kernels --devices cuda:0 --precision bf16 --json",
           "convoy bench kernels --devices cpu:0 --batch 4 --threads 1",
           "convoy bench kernels --devices emu:0"},
          {},
          {"devices", "precision", "batch", "image-size", "threads", "config", "json", "repeats"},
          run_bench_kernels};
}

}  // namespace

bool Command::accepts(const Flag& flag) const {
  bool by_group = std::find(groups.begin(), groups.end(), flag.group) != groups.end();
  return by_group || std::find(flags.begin(), flags.end(), flag.name) != flags.end();
}

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      train_command(),           eval_command(),        predict_command(),
      verify_command(),          plan_command(),        summary_command(),
      convert_command(),         report_command(),      devices_command(),
      launch_command(),          bench_step_command(),  bench_data_command(),
      bench_allreduce_command(), bench_split_command(), bench_kernels_command()};
  return commands;
}

const Command& find_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  CONVOY_FAIL(usage, "\"{}\" is no command of convoy{}; convoy -h lists them", name,
              did_you_mean(name, names));
}

}  // namespace convoy::cli
