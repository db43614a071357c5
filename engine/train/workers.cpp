// What runs where, and on how many threads.
#include <algorithm>

#include "engine/train/setup.h"
#include "kernels/base/context.h"
#include "kernels/base/cores.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Equal texts: the same cores of the same host.
std::string cores_of(const Ranks& ranks) {
  const std::string host = ranks.group() ? ranks.group()->world().host : std::string();
  return host + " " + core_list(allowed_core_list());
}

template <class T>
void append(std::vector<T>& to, std::vector<T> what) {
  to.insert(to.end(), what.begin(), what.end());
}

}  // namespace

int workers_on_these_cores(const Ranks& ranks) {
  const std::string mine = cores_of(ranks);
  const auto local = static_cast<std::size_t>(ranks.local_workers());
  const std::vector<std::string> all = ranks.all_texts(std::vector<std::string>(local, mine));
  return static_cast<int>(std::count(all.begin(), all.end(), mine));
}

int threads_per_worker(const Settings& settings, const Group* group) {
  const int cores = group ? group->cores_per_worker() : allowed_cores();
  return threads_of(settings).value_or(cores);
}

void prepare_workers(Settings& settings, const Group* group) {
  settings.threads = threads_per_worker(settings, group);
  for (std::size_t i = 0; i < settings.devices.size(); ++i) {
    DeviceContext& device = prepare_device(settings, i);
    const bool own =
        group && static_cast<int>(i) < group->local_workers() && !openmp_binds_threads();
    device.set_cores(own ? group->cores(static_cast<int>(i)) : Cores());
  }
}

void describe_workers(const TrainingJob& job, const Ranks& ranks, RunInfo& info) {
  std::vector<std::string> names, texts;
  std::vector<std::int64_t> threads;
  for (const std::string& device : job.settings.devices) {
    names.push_back(to_string(Device(device)));
    texts.push_back(context(device).describe());
    threads.push_back(context(device).threads());
  }
  append(info.devices, ranks.all_texts(names));
  append(info.device_texts, ranks.all_texts(texts));
  append(info.threads, ranks.all_numbers(threads));
  info.replicas = ranks.replicas();
  info.world = ranks.workers();
  const Layout& layout = ranks.layout();
  info.stages = layout.stages();
  info.stages_per_worker = layout.stages_per_worker;
  if (layout.stages() > 1) {
    info.cut = job.settings.cut;
    info.schedule = job.settings.schedule;
  }
  if (!ranks.group()) return;
  info.hosts = ranks.all_texts({ranks.group()->world().host});
  info.comm = uses_nccl(job.settings, ranks) ? "nccl" : ranks.group()->backend();
  if (ranks.replicas() == 1) return;
  const bool same = division_of(job.settings, ranks.replicas()).together;
  info.running_statistics = same ? "all replicas" : "replica 0";
}

}  // namespace convoy
