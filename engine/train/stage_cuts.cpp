#include "engine/train/stage_cuts.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>

#include "engine/data/order.h"
#include "engine/nn/layers.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/train/measured_costs.h"
#include "engine/train/setup.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kMostPlanned = 256;  // micro-batches: more of them change no cut
constexpr double kProfileSeconds = 10;

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string text_of(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) text += std::to_string(number) + " ";
  return text;
}

std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    at = std::from_chars(at, end, numbers.emplace_back()).ptr + 1;
  }
  return numbers;
}

// The micro-batches of the largest share of a whole window.
std::vector<std::int64_t> window_of(const Settings& settings, const Division& division) {
  const std::int64_t share = shares_of(settings.batch, division.replicas).front();
  std::vector<std::int64_t> images;
  for (std::int64_t i = 0; i < settings.accumulate; ++i) {
    const auto batch = split_batch(share, division.rule);
    images.insert(images.end(), batch.begin(), batch.end());
    if (images.size() > kMostPlanned) break;
  }
  return images;
}

CutRequest request_of(const Settings& settings, const Layout& layout) {
  CutRequest request;
  request.images = window_of(settings, division_of(settings, layout.replicas));
  request.schedule.name = schedule_is_file(settings) ? "1f1b" : settings.schedule;
  request.schedule.workers = layout.workers_per_replica;
  request.schedule.stages_per_worker = layout.stages_per_worker;
  request.recompute = settings.recompute;
  request.schedule.micro_batches.resize(request.images.size());
  std::iota(request.schedule.micro_batches.begin(), request.schedule.micro_batches.end(), 0);
  if (settings.device_memory) {
    request.caps.assign(static_cast<std::size_t>(layout.workers_per_replica),
                        static_cast<double>(*settings.device_memory));
  }
  return request;
}

// The cap is that of a worker, who holds a stage alone; measuring takes the whole network.
class NoCapScope {
 public:
  NoCapScope(MemoryPool& pool, std::size_t cap) : pool_(pool), cap_(cap) { pool_.set_cap(0); }
  ~NoCapScope() { pool_.set_cap(cap_); }
  NoCapScope(const NoCapScope&) = delete;
  NoCapScope& operator=(const NoCapScope&) = delete;

 private:
  MemoryPool& pool_;
  const std::size_t cap_;
};

std::vector<int> measured_cuts(const TrainingJob& job, const Layout& layout, const Link& link) {
  const Settings& settings = job.settings;
  CutRequest request = request_of(settings, layout);
  request.link = link;
  ProfileOptions options;
  options.device = Device(settings.devices.front());
  options.dtype = dtype_of_precision(settings);
  // Batch norm may take more images than one micro-batch has, from all replicas together.
  options.images = std::max(*std::max_element(request.images.begin(), request.images.end()),
                            least_micro_batch(*job.network, settings.bn, job.image_size));
  options.image_size = job.image_size;
  options.mse = settings.loss == "mse";
  options.states = optimizer_states(settings);
  options.budget_s = kProfileSeconds;
  const NoCapScope no_cap(context(options.device).memory(),
                          static_cast<std::size_t>(settings.device_memory.value_or(0)));
  const std::shared_ptr<Network> network = job.make_network();
  network->materialize(options.device, parameter_type(options.dtype), settings.seed);
  set_batch_norm_mode(*network, batch_norm_mode(settings));
  return auto_cut({profile_network(*network, options)}, request);
}

}  // namespace

std::vector<int> cuts_by_name(const Network& network, const std::string& cut, int stages) {
  const std::vector<std::string> names = names_in(cut);
  CONVOY_CHECK(std::ssize(names) == stages - 1,
               "--cut {}: {} cut(s) are named, but {} stages have {}", cut, names.size(), stages,
               stages - 1);
  std::vector<int> cuts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int place = find_cut(network, names[i]);
    CONVOY_CHECK(place > 0, "--cut {}: no layer stands before {}, the first stage would be empty",
                 cut, names[i]);
    CONVOY_CHECK(cuts.empty() || place != cuts.back(),
                 "--cut {}: no layer stands between {} and {}, a stage would be empty", cut,
                 names[i - (cuts.empty() ? 0 : 1)], names[i]);
    CONVOY_CHECK(cuts.empty() || place > cuts.back(),
                 "--cut {}: {} comes before {} in {}, expected the order of the network", cut,
                 names[i], names[i - (cuts.empty() ? 0 : 1)], network.name());
    cuts.push_back(place);
  }
  return cuts;
}

std::string cut_text(const Network& network, const std::vector<int>& cuts) {
  if (cuts.empty()) return "auto";
  std::string text;
  for (int place : cuts) {
    if (!text.empty()) text += ',';
    text += cut_name(network, place);
  }
  return text;
}

std::vector<int> choose_cuts(const TrainingJob& job, const Ranks& ranks) {
  const int stages = ranks.layout().stages();
  if (stages == 1) return {};
  if (job.settings.cut != "auto") return cuts_by_name(*job.network, job.settings.cut, stages);
  const bool crosses = ranks.layout().workers_per_replica > 1 && ranks.group();
  const Link link = crosses ? measured_link(*ranks.group(), has_spare_cores(job.settings)) : Link();
  std::vector<int> cuts;
  if (ranks.leads()) cuts = measured_cuts(job, ranks.layout(), link);
  return numbers_in(ranks.from_leader(text_of(cuts)));
}

}  // namespace convoy
