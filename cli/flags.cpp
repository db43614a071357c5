#include "cli/flags.h"

#include <cctype>
#include <filesystem>

#include "cli/nearest.h"
#include "engine/data/decode_image.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr auto kCommon = Use::common;
constexpr auto kRare = Use::rare;
// No sum or product of a few counts leaves 64 bits.
constexpr IntegerRange kCount{1, (std::int64_t{1} << 31) - 1};
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr IntegerRange kSteps{1, kMostSteps};
constexpr IntegerRange kClasses{1, 1 << 24};
constexpr IntegerRange kImageSizes{1, 16384};                 // what the loader makes
constexpr IntegerRange kPixels{1, kDefaultMaxPixels * 1000};  // what the decoders take
constexpr IntegerRange kThreads{1, 65536};                    // the cores say more
constexpr NumberRange kNotNegative{0};
constexpr NumberRange kBelowOne{0, 1, false, true};

/// "fashion-mnist[:DIR]", "cifar10:DIR", "folder:DIR", "synthetic[:N]"; a bare path is a folder.
std::string read_data(const Value& value) {
  const std::vector<std::string> kinds = {"fashion-mnist", "cifar10", "folder", "synthetic"};
  std::string kind = value.text.substr(0, value.text.find(':'));
  for (const std::string& known : kinds) {
    if (kind != known) continue;
    bool whole = kind != value.text && kind.size() + 1 < value.text.size();
    CONVOY_CHECK(whole || kind == "fashion-mnist" || kind == "synthetic",
                 "{}: \"{}\" names no folder, expected {}:DIR", value.origin, value.text, kind);
    return value.text;
  }
  std::error_code ignored;
  bool path = value.text.find('/') != std::string::npos ||
              std::filesystem::is_directory(value.text, ignored);
  if (path) return "folder:" + value.text;
  CONVOY_FAIL(usage,
              "{}: \"{}\" is unknown, expected fashion-mnist[:DIR], cifar10:DIR, folder:DIR or "
              "synthetic[:N]{}",
              value.origin, value.text, did_you_mean(kind, kinds));
}

std::string read_schedule(const Value& value) {
  if (value.text == "gpipe") return "fill-drain";
  if (value.text == "interleaved-1f1b") return "interleaved";
  if (value.text == "zbh1") return "zb-h1";
  bool file = value.text.find_first_of("./") != std::string::npos;
  return file ? value.text
              : read_choice(value, {"fill-drain", "1f1b", "interleaved", "zb-h1", "FILE"});
}

std::string read_stages(const Value& value) {
  if (value.text == "auto") return value.text;
  try {
    return std::to_string(read_integer(value, kCount));
  } catch (const Error& error) {
    CONVOY_FAIL(usage, "{} or auto", error.text());
  }
}

std::string read_resume(const Value& value) {
  if (value.text == "auto") return value.text;
  return read_toggle(value) ? "yes" : "";
}

std::vector<std::string> read_devices(const Value& value) {
  std::vector<std::string> names = read_list(value);
  for (std::string& name : names) {
    try {
      name = to_string(Device(name));
    } catch (const Error& error) {
      CONVOY_FAIL(usage, "{}: {}", value.origin, error.text());
    }
  }
  return names;
}

std::vector<std::int64_t> read_sizes(const Value& value) {
  std::vector<std::int64_t> sizes;
  for (const std::string& text : read_list(value))
    sizes.push_back(read_bytes({text, value.origin}));
  return sizes;
}

std::vector<std::int64_t> read_counts(const Value& value) {
  std::vector<std::int64_t> counts;
  for (const std::string& text : read_list(value)) {
    counts.push_back(read_integer({text, value.origin}, kCount));
  }
  return counts;
}

std::vector<Flag> model_flags() {
  constexpr auto group = Group::model;
  return {
      {"model", group, "NAME", "network: resnet18 to resnet152, toy, line", kCommon,
       text(&Settings::model), ""},
      {"classes", group, "N", "outputs of the last layer", kRare,
       integer(&Settings::classes, kClasses), "the data's"},
      {"image-size", group, "N", "side of the square input", kCommon,
       integer(&Settings::image_size, kImageSizes), "32 for idx and CIFAR, 224 otherwise"},
      {"precision", group, "fp32|tf32|bf16|fp64", "element type of weights and arithmetic", kRare,
       choice(&Settings::precision, {"fp32", "tf32", "bf16", "fp64"}), ""},
      {"bn", group, "MODE", "batch norm: micro, deferred, sync, frozen or deferred+sync", kRare,
       choice(&Settings::bn, {"micro", "deferred", "sync", "frozen", "deferred+sync"}), ""},
      {"weights", group, "FILE", "safetensors file to start from", kCommon,
       text(&Settings::weights), "random values of --seed"},
  };
}

std::vector<Flag> data_flags() {
  constexpr auto group = Group::data;
  return {
      {"data", group, "SOURCE",
       "fashion-mnist[:DIR], cifar10:DIR, folder:DIR with train/ and val/, or synthetic[:N]",
       kCommon, bind(Kind::text, &Settings::data, read_data), ""},
      {"limit", group, "N", "use the first N training images", kCommon,
       integer(&Settings::limit, kCount), "all"},
      {"loader-threads", group, "N", "threads that read and change images", kRare,
       integer(&Settings::loader_threads, {1, 1024}), ""},
      {"bad-images", group, "stop|skip", "what to do about an image that cannot be read", kRare,
       choice(&Settings::bad_images, {"stop", "skip"}), ""},
      {"max-pixels", group, "N", "refuse images of more pixels", kRare,
       integer(&Settings::max_pixels, kPixels), ""},
  };
}

std::vector<Flag> optimization_flags() {
  constexpr auto group = Group::optimization;
  return {
      {"batch", group, "N", "images of a batch, over all replicas", kCommon,
       integer(&Settings::batch, kCount), ""},
      {"accumulate", group, "N", "batches behind one optimizer step, whose gradients are added",
       kRare, integer(&Settings::accumulate, kCount), ""},
      {"epochs", group, "N", "passes over the training images", kCommon,
       integer(&Settings::epochs, kCount), "1, unless --steps is given"},
      {"steps", group, "N", "stop at this step and save", kCommon,
       integer(&Settings::steps, kSteps), "until the epochs end"},
      {"optimizer", group, "sgd|lars|adamw", "how weights follow gradients", kCommon,
       choice(&Settings::optimizer, {"sgd", "lars", "adamw"}), ""},
      {"lr", group, "X", "learning rate", kCommon, number(&Settings::lr, kNotNegative),
       "sgd 0.1, lars 1, adamw 0.001"},
      {"lr-schedule", group, "constant|cosine|step", "how the learning rate goes down", kRare,
       choice(&Settings::lr_schedule, {"constant", "cosine", "step"}), ""},
      {"warmup", group, "STEPS", "steps in which the learning rate rises from 0", kRare,
       integer(&Settings::warmup, {0, kMostSteps}), ""},
      {"momentum", group, "X", "of sgd and lars", kRare, number(&Settings::momentum, kBelowOne),
       ""},
      {"nesterov", group, "", "Nesterov's momentum (sgd)", kRare, toggle(&Settings::nesterov), ""},
      {"weight-decay", group, "X", "pull of the weights towards 0", kRare,
       number(&Settings::weight_decay, kNotNegative), "sgd and lars 0.0001, adamw 0.01"},
      {"label-smoothing", group, "X", "share of a label that is spread over all classes", kRare,
       number(&Settings::label_smoothing, kBelowOne), ""},
      {"loss", group, "cross-entropy|mse", "what is made small", kRare,
       choice(&Settings::loss, {"cross-entropy", "mse"}), "cross-entropy; toy and line: mse"},
      {"clip-grad", group, "X", "longest gradient over all parameters; 0 clips nothing", kRare,
       number(&Settings::clip_grad, kNotNegative), ""},
      {"eval-every", group, "EPOCHS", "epochs between evaluations", kRare,
       integer(&Settings::eval_every, kCount), "1; with --steps none"},
      {"seed", group, "N", "of weights, order and augmentation", kCommon,
       bind(Kind::integer, &Settings::seed, read_unsigned), ""},
  };
}

std::vector<Flag> layout_flags() {
  constexpr auto group = Group::layout;
  return {
      {"devices", group, "LIST", "devices of each process: cpu:0, ref:0, cuda:0, emu:0", kCommon,
       bind(Kind::list, &Settings::devices, read_devices), "cpu:0"},
      {"replicas", group, "R", "whole networks that share a batch", kRare,
       integer(&Settings::replicas, kCount), "one a worker"},
      {"stages", group, "S|auto", "parts of the network, each on its own worker", kRare,
       bind(Kind::text_or_integer, &Settings::stages, read_stages), ""},
      {"cut", group, "auto|NAME,NAME", "first layer of each later stage", kRare,
       text(&Settings::cut), ""},
      {"schedule", group, "fill-drain|1f1b|interleaved|zb-h1|FILE",
       "order in which stages work on micro-batches", kRare,
       bind(Kind::text, &Settings::schedule, read_schedule), ""},
      {"stages-per-worker", group, "V", "of the interleaved schedule", kRare,
       integer(&Settings::stages_per_worker, kCount), ""},
      {"micro-batch-size", group, "N", "images of a micro-batch", kRare,
       integer(&Settings::micro_batch_size, kCount), "the replica's batch"},
      {"micro-batches", group, "N", "micro-batches of a replica's share of a batch", kRare,
       integer(&Settings::micro_batches, kCount), "1"},
      {"recompute", group, "", "keep no activations, compute them again for backward", kRare,
       toggle(&Settings::recompute), ""},
      {"threads", group, "N", "threads of each worker", kCommon,
       integer(&Settings::threads, kThreads), "OMP_NUM_THREADS, else the cores over the workers"},
      {"device-memory", group, "BYTES", "most memory of each worker; KiB, MiB and GiB may follow",
       kRare, bind(Kind::text_or_integer, &Settings::device_memory, read_bytes), "no cap"},
      {"comm", group, "auto|thread|mpi|nccl", "how workers talk to each other", kRare,
       choice(&Settings::comm, {"auto", "thread", "mpi", "nccl"}), ""},
  };
}

std::vector<Flag> run_flags() {
  constexpr auto group = Group::run;
  return {
      {"checkpoint", group, "DIR", "where checkpoints are written, or read from", kCommon,
       text(&Settings::checkpoint), "none"},
      {"save-every", group, "STEPS", "steps between checkpoints", kRare,
       integer(&Settings::save_every, kSteps), "each epoch"},
      {"keep", group, "N", "newest checkpoints to keep", kRare, integer(&Settings::keep, kCount),
       ""},
      {"resume", group, "[auto]", "go on from the newest checkpoint; auto: or start afresh",
       kCommon, bind(Kind::optional_text, &Settings::resume, read_resume), "start afresh"},
      {"log", group, "FILE", "write metrics as JSON lines", kCommon, text(&Settings::log), "none"},
      {"trace", group, "FILE", "write a Chrome trace", kRare, text(&Settings::trace), "none"},
      {"report", group, "FILE", "write an HTML report", kRare, text(&Settings::report), "none"},
      {"tensorboard", group, "DIR", "write TensorBoard events", kRare, text(&Settings::tensorboard),
       "none"},
      {"comm-timeout", group, "SECONDS", "longest wait for another worker", kRare,
       number(&Settings::comm_timeout, {.low = 0, .open_low = true}), ""},
      {"kernels", group, "own|vendor", "kernels of GPUs", kRare,
       choice(&Settings::kernels, {"own", "vendor"}), ""},
      {"graph", group, "", "record a step of one GPU once, then launch it as one piece", kRare,
       toggle(&Settings::graph), ""},
      {"deterministic", group, "",
       "equal bits in each run from vendor libraries of GPUs too; the CPU's always are", kRare,
       toggle(&Settings::deterministic), ""},
  };
}

std::vector<Flag> program_flags() {
  constexpr auto group = Group::program;
  return {
      {"config", group, "FILE.toml", "read flags from a file: key = value", kRare,
       text(&Options::config), "none"},
      {"json", group, "", "JSON lines on stdout", kCommon, toggle(&Options::json), ""},
      {"logits", group, "", "add the raw outputs", kCommon, toggle(&Options::logits), ""},
      {"repeats", group, "N", "measure N times, tell the median", kCommon,
       integer(&Options::repeats, {1, 100000}), "3; bench allreduce: 15, bench kernels: 5"},
      {"bytes", group, "LIST", "sizes to measure; KiB, MiB and GiB may follow", kCommon,
       bind(Kind::list, &Options::bytes, read_sizes), "4000,64000,1000000,25000000,100000000"},
      {"cluster", group, "FILE.toml",
       "plan for the machines that this describes; nothing is measured", kCommon,
       text(&Options::cluster), "the devices at hand"},
      {"splits", group, "LIST", "images of a micro-batch, each to be measured", kCommon,
       bind(Kind::list, &Options::splits, read_counts),
       "1,3,5,8,10,12,20,40,60 as far as they fit"},
      {"ranks", group, "N", "processes to start, -n N", kCommon,
       integer(&Options::ranks, {1, 1 << 20}), "none"},
      {"hosts", group, "FILE", "hosts to start them on, a line each: node1 slots=8", kCommon,
       text(&Options::hosts), "this one"},
      {"iface", group, "NAME", "network interface between hosts", kCommon, text(&Options::iface),
       "chosen"},
      {"restarts", group, "R", "go on from the last checkpoint up to R times when a rank has died",
       kCommon, integer(&Options::restarts, {0, 1000000}), ""},
      {"output", group, "FILE.html", "file to write, -o FILE", kCommon, text(&Options::output),
       "beside the metrics"},
      {"dry-run", group, "", "print the command of mpirun and start nothing", kCommon,
       toggle(&Options::dry_run), ""},
  };
}

}  // namespace

const char* name(Group group) {
  switch (group) {
    case Group::model:
      return "model";
    case Group::data:
      return "data";
    case Group::optimization:
      return "optimization";
    case Group::layout:
      return "layout";
    case Group::run:
      return "run";
    case Group::program:
      return "program";
  }
  return "";
}

std::string variable(const Flag& flag) {
  std::string text = "CONVOY_";
  for (char c : flag.name) {
    text += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

const std::vector<Flag>& all_flags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all;
    for (auto group :
         {model_flags, data_flags, optimization_flags, layout_flags, run_flags, program_flags}) {
      for (Flag& flag : group()) all.push_back(std::move(flag));
    }
    return all;
  }();
  return flags;
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : all_flags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

std::vector<std::string> flag_names() {
  std::vector<std::string> names;
  for (const Flag& flag : all_flags()) names.push_back(flag.name);
  return names;
}

std::string default_text(const Flag& flag) {
  if (!flag.open.empty() || flag.binding.kind == Kind::toggle) return flag.open;
  std::string json = flag.binding.json(Options());
  bool quoted = json.starts_with('"');
  return quoted ? json.substr(1, json.size() - 2) : json;
}

void echo_settings(const Options& options, JsonObject& line) {
  for (const Flag& flag : all_flags()) {
    if (flag.group == Group::program) continue;
    line.add_raw(flag.name, flag.binding.json(options));
  }
}

void echo_settings(const Options& options, const std::vector<std::string>& names,
                   JsonObject& line) {
  for (const std::string& name : names) {
    line.add_raw(name, find_flag(name)->binding.json(options));
  }
}

}  // namespace convoy::cli
