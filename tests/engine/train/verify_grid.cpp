// Verifies a grid of layouts of one model: every schedule and micro-batch size on so many workers,
// as threads of this process, or as the ranks that mpirun has started. One device's steps are
// computed once for each micro-batch size. Arguments are WORD=VALUE, see kDefaults; layouts whose
// name does not hold the value of `only` are passed over.
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "engine/nn/slice.h"
#include "engine/train/setup.h"
#include "engine/train/verify.h"
#include "kernels/base/error.h"
#include "models/models.h"

using namespace convoy;

namespace {

using Words = std::map<std::string, std::string>;

const Words kDefaults = {{"model", "resnet18"}, {"image-size", "64"},
                         {"steps", "3"},        {"workers", "2"},
                         {"replicas", "1"},     {"sizes", "1,2,3,5"},
                         {"bn", "micro"},       {"recompute", "0"},
                         {"only", ""},          {"schedules", "fill-drain,1f1b,interleaved,zb-h1"}};

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kClasses = 10;

Words read(int count, char** words) {
  Words read = kDefaults;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t sign = word.find('=');
    const std::string key = word.substr(0, sign);
    CONVOY_CHECK(sign != word.npos && kDefaults.contains(key), "{}: expected one of {} and =VALUE",
                 word, fmt::join(kDefaults, ", "));
    read[key] = word.substr(sign + 1);
  }
  return read;
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> items(1);
  for (char c : text) {
    if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

class Grid {
 public:
  explicit Grid(const Words& words)
      : words_(words),
        workers_(std::stoi(words.at("workers"))),
        replicas_(std::stoi(words.at("replicas"))),
        world_(discover_world()),
        drawn_(make_model(words.at("model"), kClasses)) {}

  /// Returns how many layouts were not equal.
  int run() {
    for (const std::string& size : listed(words_.at("sizes"))) {
      KnownSteps known;
      for (const std::string& schedule : listed(words_.at("schedules"))) {
        if (workers_ > 1 || schedule == "1f1b" || schedule == "interleaved") {
          run_one(schedule, std::stoll(size), known);
        }
      }
    }
    if (world_.rank == 0) fmt::print("{} equal, {} not equal\n", equal_, different_);
    return different_;
  }

 private:
  std::string name_of(const std::string& schedule, std::int64_t size) const {
    return fmt::format("{} {} workers={} replicas={} bn={}{} schedule={} size={}",
                       words_.at("model"), world_.size > 1 ? "mpi" : "threads", workers_, replicas_,
                       words_.at("bn"), words_.at("recompute") == "1" ? " recompute" : "", schedule,
                       size);
  }

  void run_one(const std::string& schedule, std::int64_t size, KnownSteps& known) {
    using Clock = std::chrono::steady_clock;
    const std::string name = name_of(schedule, size);
    if (name.find(words_.at("only")) == name.npos) return;
    const auto start = Clock::now();
    const std::unique_ptr<Group> group = make_group();
    const VerifyResult result = verify(job_of(schedule, size, group.get()),
                                       {.steps = std::stoll(words_.at("steps")), .known = &known});
    ++(result.equal ? equal_ : different_);
    if (world_.rank != 0) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("{} {} ({:.1f} s)\n", result.equal ? "equal    " : "NOT EQUAL", name, seconds);
    if (result.first) {
      fmt::print("  step {}, {}: {} {}\n", result.first->step, result.first->phase,
                 result.first->layer, result.first->tensor);
    }
    std::fflush(stdout);
  }

  std::unique_ptr<Group> make_group() const {
    const int all = workers_ * replicas_;
    CONVOY_CHECK(world_.size == 1 || world_.size == all, "{} ranks for {} workers", world_.size,
                 all);
    if (all == 1) return nullptr;
    GroupOptions options;
    options.local_workers = all / world_.size;
    options.timeout = 50;
    options.on_note = [](const std::string&) {};
    return Group::make(world_, options);
  }

  TrainingJob job_of(const std::string& schedule, std::int64_t size, Group* group) {
    TrainingJob job;
    Settings& settings = job.settings;
    settings.model = words_.at("model");
    settings.classes = kClasses;
    settings.image_size = std::stoll(words_.at("image-size"));
    settings.data = "synthetic:100";
    settings.limit = 3 * kBatch;
    settings.bn = words_.at("bn");
    settings.recompute = words_.at("recompute") == "1";
    settings.batch = kBatch * replicas_;
    settings.lr = 0.01;
    settings.schedule = schedule;
    settings.micro_batch_size = size;
    settings.threads = 1;
    const int stages = workers_ * (schedule == "interleaved" ? 2 : 1);
    settings.stages = std::to_string(stages);
    settings.cut = cuts_of(stages);
    settings.devices.clear();
    const int local = workers_ * replicas_ / world_.size;
    for (int i = 0; i < local; ++i) settings.devices.push_back(fmt::format("cpu:{}", i));
    for (std::size_t i = 0; i < settings.devices.size(); ++i) prepare_device(settings, i);
    job.make_network = [this] {
      const NoInitializationScope no_values;
      std::shared_ptr<Network> network = make_model(words_.at("model"), kClasses);
      network->load_state_dict(drawn_->state_dict());
      return network;
    };
    job.network = job.make_network();
    job.data = open_images(settings);
    job.image_size = *settings.image_size;
    job.group = group;
    return job;
  }

  // About as many layers in each stage: most cuts lie within residual blocks.
  std::string cuts_of(int stages) const {
    if (stages == 1) return "auto";
    const int layers = static_cast<int>(drawn_->layers().size());
    std::vector<std::string> names;
    for (int i = 1; i < stages; ++i) names.push_back(cut_name(*drawn_, i * layers / stages));
    return fmt::format("{}", fmt::join(names, ","));
  }

  const Words words_;
  const int workers_;
  const int replicas_;
  const World world_;
  const std::shared_ptr<Network> drawn_;
  int equal_ = 0;
  int different_ = 0;
};

}  // namespace

int main(int count, char** words) {
  try {
    return Grid(read(count, words)).run() == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "verify_grid: {}\n", error.what());
    return 2;
  }
}
