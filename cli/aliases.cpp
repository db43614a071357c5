#include "cli/aliases.h"

#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

struct Alias {
  std::string_view typed;
  std::string_view name;
  std::string_view prefix = {};
  std::string_view value = {};
};

constexpr Alias kAliases[] = {
    {"--arch", "model"},
    {"--num-classes", "classes"},
    {"--img-size", "image-size"},
    {"--data-path", "data", "folder:"},
    {"-j", "loader-threads"},
    {"--opt", "optimizer"},
    {"--sched", "lr-schedule"},
    {"--wd", "weight-decay"},
    {"--smoothing", "label-smoothing"},
    {"--grad-accum-steps", "accumulate"},
    {"--global-batch", "batch"},
    {"--chunks", "micro-batches"},
    {"--n-microbatches", "micro-batches"},
    {"--initial-checkpoint", "weights"},
    {"--amp", "precision", "", "bf16"},
    {"--sync-bn", "bn", "", "sync"},
    {"-c", "config"},
    {"-n", "ranks"},
    {"-o", "output"},
};

struct LookAlike {
  std::string_view typed;
  std::string_view instead;
};

constexpr std::string_view kBatch =
    "counts the images of one device elsewhere; here --batch N counts those of a batch over "
    "all replicas";
constexpr std::string_view kLimit =
    "counts batches elsewhere; here --limit N counts training images";
constexpr std::string_view kWarmup = "counts epochs elsewhere; here --warmup STEPS counts steps";
constexpr std::string_view kWorkers =
    "a worker is a device here; --loader-threads N (-j N) sets the threads that read images";
constexpr std::string_view kDevices = "is not known here; --devices LIST names them: cpu:0,cpu:1";

constexpr LookAlike kLookAlikes[] = {
    {"-b", kBatch},
    {"--batch-size", kBatch},
    {"--bs", kBatch},
    {"--limit-train-batches", kLimit},
    {"--warmup-epochs", kWarmup},
    {"--lr-warmup-epochs", kWarmup},
    {"--warmup-ratio", "is a share elsewhere; here --warmup STEPS counts steps"},
    {"--workers", kWorkers},
    {"--num-workers", kWorkers},
    {"--gpus", kDevices},
    {"--gpu", kDevices},
    {"--nproc-per-node", kDevices},
    {"--pretrained",
     "is not known here; --weights FILE.safetensors names the values to start from"},
};

}  // namespace

Meaning meaning_of(std::string_view typed) {
  for (const LookAlike& other : kLookAlikes) {
    CONVOY_CHECK(typed != other.typed, "{} {}", typed, other.instead);
  }
  for (const Alias& alias : kAliases) {
    if (typed != alias.typed) continue;
    return {std::string(alias.name), std::string(alias.prefix), std::string(alias.value)};
  }
  return {std::string(typed.substr(typed.starts_with("--") ? 2 : 1)), "", ""};
}

}  // namespace convoy::cli
