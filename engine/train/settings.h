// All settings of a run, one field a flag of the program, with the defaults that the help prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convoy {

/// Sides of images where --image-size is left open.
inline constexpr std::int64_t kImageSize = 224;
inline constexpr std::int64_t kSmallImageSize = 32;  // idx and CIFAR

/// Fields are named as the flags; an empty optional means "left open: see the comment".
struct Settings {
  // model
  std::string model = "resnet50";
  std::optional<std::int64_t> classes;     // the data's
  std::optional<std::int64_t> image_size;  // 32 for idx and CIFAR, 224 otherwise
  std::string precision = "fp32";          // fp32, tf32, bf16, fp64
  std::string bn = "micro";                // micro, deferred, sync, frozen, deferred+sync
  std::string weights;                     // a safetensors file to start from

  // data
  std::string data = "fashion-mnist";
  std::optional<std::int64_t> limit;  // all training images
  int loader_threads = 1;
  std::string bad_images = "stop";  // stop, skip
  std::int64_t max_pixels = 178'956'970;

  // optimization
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;
  std::optional<std::int64_t> epochs;  // 1, unless --steps is given
  std::optional<std::int64_t> steps;
  std::string optimizer = "sgd";         // sgd, lars, adamw
  std::optional<double> lr;              // sgd 0.1, lars 1.0, adamw 0.001
  std::string lr_schedule = "constant";  // constant, cosine, step
  std::int64_t warmup = 0;
  double momentum = 0.9;
  bool nesterov = false;
  std::optional<double> weight_decay;  // sgd and lars 1e-4, adamw 0.01
  double label_smoothing = 0;
  std::optional<std::string> loss;  // cross-entropy, mse; open: by what the network takes
  double clip_grad = 0;             // 0: no clipping
  std::optional<std::int64_t> eval_every;
  std::uint64_t seed = 0;

  // layout
  std::vector<std::string> devices = {"cpu:0"};
  std::optional<std::int64_t> replicas;  // as many as there are workers
  std::string stages = "1";
  std::string cut = "auto";
  std::string schedule = "1f1b";
  std::int64_t stages_per_worker = 2;
  std::optional<std::int64_t> micro_batch_size;
  std::optional<std::int64_t> micro_batches;
  bool recompute = false;
  std::optional<int> threads;  // OMP_NUM_THREADS, else the cores allowed over the devices
  std::optional<std::int64_t> device_memory;
  std::string comm = "auto";

  // run
  std::string checkpoint;
  std::optional<std::int64_t> save_every;  // each epoch
  std::int64_t keep = 2;
  std::string resume;  // "": start; "auto": start or go on; "yes": go on
  std::string log;
  std::string trace;
  std::string report;
  std::string tensorboard;
  double comm_timeout = 60;
  std::string kernels = "own";
  bool graph = false;
  bool deterministic = false;
};

}  // namespace convoy
