#include "models/models.h"

#include <algorithm>
#include <functional>

#include "kernels/base/error.h"
#include "models/networks.h"

namespace convoy {
namespace {

struct Entry {
  const char* name;
  std::function<std::shared_ptr<Network>(std::int64_t classes)> make;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {"resnet18", [](std::int64_t classes) { return make_resnet("resnet18", classes); }},
      {"resnet34", [](std::int64_t classes) { return make_resnet("resnet34", classes); }},
      {"resnet50", [](std::int64_t classes) { return make_resnet("resnet50", classes); }},
      {"resnet101", [](std::int64_t classes) { return make_resnet("resnet101", classes); }},
      {"resnet152", [](std::int64_t classes) { return make_resnet("resnet152", classes); }},
      {"toy", [](std::int64_t) { return make_toy(); }},
      {"line", [](std::int64_t) { return make_line(); }},
  };
  return list;
}

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (name == entry.name) return entry;
  }
  std::string known;
  for (const std::string& each : model_names()) known += (known.empty() ? "" : ", ") + each;
  CONVOY_FAIL(usage, "model: '{}' is not known; there are {}", name, known);
}

std::shared_ptr<Network> made(const std::string& name, std::int64_t classes) {
  CONVOY_CHECK(classes >= 1, "model: {} classes, expected at least 1", classes);
  return entry_of(name).make(classes);
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

std::shared_ptr<Network> make_model(const std::string& name, std::int64_t classes,
                                    std::uint64_t seed) {
  NoInitializationScope drawn_below;
  std::shared_ptr<Network> network = made(name, classes);
  network->initialize(seed);
  return network;
}

std::shared_ptr<Network> make_model_without_values(const std::string& name, std::int64_t classes) {
  NoValuesScope no_values;
  return made(name, classes);
}

}  // namespace convoy
