// `devices`: what this machine and this build have, and what is wrong with it.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "kernels/base/context.h"
#include "kernels/base/cores.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

struct DeviceLine {
  std::string name;
  bool usable = false;
  std::string text;  ///< what it is, or why it cannot be used
};

DeviceLine look_at(const std::string& name) {
  try {
    return {name, true, context(Device(name)).describe()};
  } catch (const Error& error) {
    return {name, false, error.text()};
  }
}

/// Each with its fix.
std::vector<std::string> problems() {
  std::vector<std::string> found;
  const char* threads = std::getenv("OMP_NUM_THREADS");
  int wanted = threads ? std::atoi(threads) : 0;
  if (wanted > allowed_cores()) {
    found.push_back(
        fmt::format("OMP_NUM_THREADS is {}, but {} cores are allowed: unset it, or give --threads",
                    wanted, allowed_cores()));
  }
  if (threads && *threads && wanted < 1) {
    found.push_back(
        fmt::format("OMP_NUM_THREADS is \"{}\", which is no number of threads: unset it", threads));
  }
  auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (allowed_cores() < cores) {
    found.push_back(
        fmt::format("{} of {} cores are allowed: start without taskset, or with "
                    "--bind-to none under mpirun",
                    allowed_cores(), cores));
  }
  return found;
}

void print_json(const std::vector<DeviceLine>& devices) {
  std::vector<JsonObject> list;
  for (const DeviceLine& device : devices) {
    list.push_back({{"device", device.name}, {"usable", device.usable}, {"text", device.text}});
  }
  JsonObject line{{"devices", list},
                  {"versions", json_of(versions())},
                  {"cores_allowed", allowed_cores()},
                  {"affinity", core_list(allowed_core_list())},
                  {"problems", problems()}};
  print_line(line.text());
}

void print_text(const std::vector<DeviceLine>& devices) {
  for (const DeviceLine& device : devices) {
    print_line(
        fmt::format("{:<8}{}{}", device.name, device.usable ? "" : "not usable: ", device.text));
  }
  for (const auto& [name, version] : versions()) print_line(fmt::format("{:<10}{}", name, version));
  print_line(
      fmt::format("cores     {} allowed: {}", allowed_cores(), core_list(allowed_core_list())));
  for (const std::string& problem : problems()) print_line("problem   " + problem);
}

}  // namespace

int run_devices(Options& options) {
  std::vector<DeviceLine> devices;
  for (const char* name : {"cpu:0", "ref:0"}) devices.push_back(look_at(name));
  const int gpus = std::max(1, device_count(DeviceType::cuda));  // without any, cuda:0 says why
  for (int i = 0; i < gpus; ++i) devices.push_back(look_at(fmt::format("cuda:{}", i)));
  devices.push_back(look_at("emu:0"));
  print_notes(options.notes);
  options.json ? print_json(devices) : print_text(devices);
  return 0;
}

}  // namespace convoy::cli
