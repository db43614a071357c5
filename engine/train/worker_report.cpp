#include "engine/train/worker_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "engine/parallel/pipeline/spans.h"

namespace convoy {
namespace {

constexpr std::size_t kSamples = 64;  // kept of each phase

double median(const std::deque<double>& values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void PhaseSamples::add(Phase phase, std::int64_t images, double seconds) {
  std::deque<double>& values = samples_[images][phase];
  values.push_back(seconds);
  if (values.size() > kSamples) values.pop_front();
}

std::map<std::int64_t, PhaseTimes> PhaseSamples::times() const {
  std::map<std::int64_t, PhaseTimes> times;
  for (const auto& [images, phases] : samples_) {
    times[images] = {median(phases[forward]),
                     median(phases[backward_input]) + median(phases[recompute]),
                     median(phases[backward_weight])};
  }
  return times;
}

std::map<std::int64_t, double> PhaseSamples::recompute_times() const {
  std::map<std::int64_t, double> times;
  for (const auto& [images, phases] : samples_) times[images] = median(phases[recompute]);
  return times;
}

// The account's own text comes last: it may have several lines.
std::string write_report(const WorkerReport& report) {
  std::string text =
      fmt::format("{} {} {}\n", report.host_s, report.links.size(), report.stages.size());
  for (const LinkReport& link : report.links) {
    text += fmt::format("{} {} {} {} {}\n", link.from, link.to, link.latency_s, link.bytes_per_s,
                        link.clock_offset_s);
  }
  for (const StageReport& stage : report.stages) {
    text += fmt::format("{} {} {} {}\n", stage.stage, stage.cost.all_reduce_s, stage.cost.step_s,
                        stage.cost.times.size());
    const StageMemory& memory = stage.cost.memory;
    text += fmt::format("{} {} {} {} {}\n", memory.parameter_bytes, memory.workspace_bytes,
                        memory.kept_bytes, memory.weight_bytes, memory.backward_bytes);
    for (const auto& [images, times] : stage.cost.times) {
      text += fmt::format("{} {} {} {} {}\n", images, times.forward, times.backward_input,
                          times.backward_weight, stage.recompute.at(images));
    }
  }
  return text + write_accounts({report.account});
}

WorkerReport read_report(const std::string& text) {
  std::istringstream in(text);
  WorkerReport report;
  std::size_t links = 0, stages = 0;
  in >> report.host_s >> links >> stages;
  for (std::size_t i = 0; i < links; ++i) {
    LinkReport& link = report.links.emplace_back();
    in >> link.from >> link.to >> link.latency_s >> link.bytes_per_s >> link.clock_offset_s;
  }
  for (std::size_t i = 0; i < stages; ++i) {
    StageReport& stage = report.stages.emplace_back();
    std::size_t counts = 0;
    in >> stage.stage >> stage.cost.all_reduce_s >> stage.cost.step_s >> counts;
    StageMemory& memory = stage.cost.memory;
    in >> memory.parameter_bytes >> memory.workspace_bytes >> memory.kept_bytes >>
        memory.weight_bytes >> memory.backward_bytes;
    for (std::size_t k = 0; k < counts; ++k) {
      std::int64_t images = 0;
      PhaseTimes times;
      double recompute = 0;
      in >> images >> times.forward >> times.backward_input >> times.backward_weight >> recompute;
      stage.cost.times[images] = times;
      stage.recompute[images] = recompute;
    }
  }
  in.get();
  report.account = read_accounts(text.substr(static_cast<std::size_t>(in.tellg()))).at(0);
  return report;
}

}  // namespace convoy
