#include "cli/agreement.h"

#include <set>

#include "engine/parallel/pipeline/schedule_text.h"
#include "engine/train/layout.h"
#include "kernels/base/device.h"

namespace convoy::cli {
namespace {

// Settings of which each process has its own.
bool is_local(const std::string& name) {
  static const std::set<std::string> names = {"devices", "threads", "device-memory"};
  return names.contains(name);
}

}  // namespace

Facts common_facts(const Settings& settings, const std::map<std::string, std::string>& json) {
  Facts facts = {{"version", CONVOY_VERSION}};
  for (const auto& [name, value] : json) {
    if (!is_local(name)) facts.emplace_back("--" + name, value);
  }
  if (schedule_is_file(settings) && settings.stages != "1") {
    const std::string table = write_schedule(read_schedule_file(settings.schedule));
    facts.emplace_back("table in " + settings.schedule, table);
  }
  facts.emplace_back("kind of --devices", name(Device(settings.devices.front()).type));
  return facts;
}

}  // namespace convoy::cli
