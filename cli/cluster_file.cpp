#include "cli/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>

#include "cli/nearest.h"
#include "cli/toml_file.h"
#include "cli/value.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kMostWorkers = 1 << 20;

// A table of the file: reads keys with their types, and refuses those that nobody has read.
class Section {
 public:
  Section(const std::string& path, const std::string& name, const toml::table& table)
      : path_(path), name_(name), table_(table) {}

  std::string place() const { return place_of(path_, table_.source()); }

  std::string text(const char* key) {
    const toml::node& node = needed(key);
    CONVOY_CHECK(node.is_string(), "{}: {} of {} is {}, expected a string", place_at(node), key,
                 name_, type_name(node));
    return *node.value<std::string>();
  }

  std::int64_t count(const char* key) {
    const toml::node& node = needed(key);
    CONVOY_CHECK(node.is_integer(), "{}: {} of {} is {}, expected an integer", place_at(node), key,
                 name_, type_name(node));
    const std::int64_t value = *node.value<std::int64_t>();
    CONVOY_CHECK(value >= 1 && value <= kMostWorkers, "{}: {} of {} is {}, expected 1 to {}",
                 place_at(node), key, name_, value, kMostWorkers);
    return value;
  }

  // More than 0.
  double rate(const char* key) { return number(needed(key), key, true); }
  // 0 or more; 0 where it is left out.
  double seconds(const char* key) {
    const toml::node* node = find(key);
    return node ? number(*node, key, false) : 0;
  }
  // A number, or a text such as "80GiB".
  double bytes(const char* key) {
    const toml::node& node = needed(key);
    if (!node.is_string()) return number(node, key, true);
    const std::string origin = fmt::format("{}: {} of {}", place_at(node), key, name_);
    return static_cast<double>(read_bytes({*node.value<std::string>(), origin}));
  }

  const toml::table* table(const char* key) {
    const toml::node& node = needed(key);
    CONVOY_CHECK(node.is_table(), "{}: {} of {} is {}, expected a table", place_at(node), key,
                 name_, type_name(node));
    return node.as_table();
  }

  // [[key]], at least one.
  std::vector<const toml::table*> tables(const char* key) {
    const toml::node& node = needed(key);
    const toml::array* array = node.as_array();
    CONVOY_CHECK(array && !array->empty() && array->is_homogeneous<toml::table>(),
                 "{}: {} is {}, expected tables: [[{}]]", place_at(node), key, type_name(node),
                 key);
    std::vector<const toml::table*> found;
    for (const toml::node& each : *array) found.push_back(each.as_table());
    return found;
  }

  // `usage` for a key that is none, the first one in the file.
  void done() const {
    const toml::key* first = nullptr;
    for (auto&& [key, node] : table_) {
      if (known_.contains(std::string(key.str()))) continue;
      if (!first || key.source().begin.line < first->source().begin.line) first = &key;
    }
    if (!first) return;
    CONVOY_FAIL(usage, "{}: \"{}\" is no key of {}{}", place_of(path_, first->source()),
                first->str(), name_, did_you_mean(first->str(), {known_.begin(), known_.end()}));
  }

 private:
  std::string place_at(const toml::node& node) const { return place_of(path_, node.source()); }

  const toml::node* find(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }

  const toml::node& needed(const char* key) {
    const toml::node* node = find(key);
    CONVOY_CHECK(node, "{}: {} has no {}", place(), name_, key);
    return *node;
  }

  double number(const toml::node& node, const char* key, bool positive) const {
    CONVOY_CHECK(node.is_number(), "{}: {} of {} is {}, expected a number", place_at(node), key,
                 name_, type_name(node));
    const double value = *node.value<double>();
    const bool fits =
        value < std::numeric_limits<double>::infinity() && (positive ? value > 0 : value >= 0);
    CONVOY_CHECK(fits, "{}: {} of {} is {}, expected {}", place_at(node), key, name_, value,
                 positive ? "more than 0" : "0 or more");
    return value;
  }

  const std::string& path_;
  std::string name_;
  const toml::table& table_;
  std::set<std::string> known_;
};

DeviceRates read_device(const std::string& path, const toml::table& table) {
  Section section(path, "[[device]]", table);
  DeviceRates device;
  device.name = section.text("name");
  device.flops = section.rate("flops");
  device.bytes_per_s = section.rate("bytes_per_s");
  device.memory_bytes = section.bytes("memory");
  device.launch_s = section.seconds("launch_s");
  section.done();
  return device;
}

Link read_link(const std::string& path, Section& links, const char* name) {
  const toml::table* table = links.table(name);
  Section section(path, fmt::format("[links.{}]", name), *table);
  Link link;
  link.latency_s = section.seconds("latency_s");
  link.bytes_per_s = section.rate("bytes_per_s");
  section.done();
  return link;
}

int kind_of(const Cluster& cluster, const std::string& name, const std::string& place) {
  std::vector<std::string> names;
  for (const DeviceRates& device : cluster.devices) names.push_back(device.name);
  const auto found = std::find(names.begin(), names.end(), name);
  CONVOY_CHECK(found != names.end(), "{}: no [[device]] is called {}{}", place, name,
               did_you_mean(name, names));
  return static_cast<int>(found - names.begin());
}

void add_nodes(const std::string& path, const toml::table& table, Cluster& cluster) {
  Section section(path, "[[nodes]]", table);
  const std::int64_t nodes = section.count("count");
  const std::int64_t devices = section.count("devices");
  const int kind = kind_of(cluster, section.text("device"), section.place());
  section.done();
  PlanMachine& machine = cluster.machine;
  CONVOY_CHECK(machine.per_node == 0 || machine.per_node == devices,
               "{}: nodes of {} devices after nodes of {}, expected as many on each",
               section.place(), devices, machine.per_node);
  const auto all = static_cast<std::int64_t>(machine.kinds.size()) + nodes * devices;
  CONVOY_CHECK(all <= kMostWorkers, "{}: {} devices in all, expected at most {}", section.place(),
               all, kMostWorkers);
  machine.per_node = static_cast<int>(devices);
  machine.kinds.resize(static_cast<std::size_t>(all), kind);
  machine.workers = static_cast<int>(all);
}

}  // namespace

Cluster read_cluster_file(const std::string& path) {
  const toml::table table = parse_toml_file("--cluster", path);
  Section whole(path, path, table);
  Cluster cluster;
  cluster.name = whole.text("name");
  cluster.machine.host_s = whole.seconds("instruction_s");
  for (const toml::table* device : whole.tables("device")) {
    cluster.devices.push_back(read_device(path, *device));
    cluster.machine.caps.push_back(cluster.devices.back().memory_bytes);
  }
  for (const toml::table* nodes : whole.tables("nodes")) add_nodes(path, *nodes, cluster);
  Section links(path, "[links]", *whole.table("links"));
  cluster.machine.inside = read_link(path, links, "inside");
  cluster.machine.between = read_link(path, links, "between");
  links.done();
  whole.done();
  return cluster;
}

}  // namespace convoy::cli
