#include "cli/cluster_file.h"

#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

const char* const kDevice =
    "[[device]]\nname = \"gpu\"\nflops = 1e12\nbytes_per_s = 1e11\nmemory = \"2GiB\"\n";
const char* const kNodes = "[[nodes]]\ncount = 3\ndevices = 2\ndevice = \"gpu\"\n";
const char* const kLinks =
    "[links.inside]\nbytes_per_s = 1e10\n[links.between]\nlatency_s = 1e-5\nbytes_per_s = 1e9\n";

Cluster read(const std::string& content) {
  TemporaryFolder folder;
  return read_cluster_file(folder.write("c.toml", content));
}

std::string error_of(const std::string& content) {
  const std::string text = usage_error([&] { read(content); });
  const std::size_t start = text.find("c.toml");
  return start == std::string::npos ? text : text.substr(start);
}

}  // namespace

TEST_CASE("a cluster file gives devices, workers and links") {
  const Cluster cluster =
      read("name = \"three\"\ninstruction_s = 1e-6\n" + std::string(kDevice) + kNodes + kLinks);
  CHECK(cluster.name == "three");
  REQUIRE(cluster.devices.size() == 1);
  CHECK(cluster.devices[0].flops == 1e12);
  CHECK(cluster.devices[0].memory_bytes == 2147483648.0);
  CHECK(cluster.devices[0].launch_s == 0);
  CHECK(cluster.machine.workers == 6);
  CHECK(cluster.machine.per_node == 2);
  CHECK(cluster.machine.kinds == std::vector<int>(6, 0));
  CHECK(cluster.machine.caps == std::vector<double>{2147483648.0});
  CHECK(cluster.machine.inside.latency_s == 0);
  CHECK(cluster.machine.between.bytes_per_s == 1e9);
  CHECK(cluster.machine.host_s == 1e-6);
}

TEST_CASE("the example of a cluster is one of 4096 workers") {
  const Cluster cluster = read_cluster_file(std::string(CONVOY_EXAMPLES) + "/cluster-4096.toml");
  CHECK(cluster.machine.workers == 4096);
  CHECK(cluster.machine.per_node == 8);
}

TEST_CASE("cluster files: errors name file, line and key") {
  const std::string name = "name = \"c\"\n";
  CHECK(error_of(name + kNodes + kLinks).ends_with("c.toml has no device"));
  CHECK(error_of(name + "[[device]]\nname = \"gpu\"\nflops = \"fast\"\n" + kNodes + kLinks) ==
        "c.toml:4: flops of [[device]] is a string, expected a number");
  CHECK(error_of(name + "[[device]]\nname = \"gpu\"\nflops = 0\n" + kNodes + kLinks) ==
        "c.toml:4: flops of [[device]] is 0, expected more than 0");
  CHECK(error_of(name + "[[device]]\nname = \"gpu\"\n" + kNodes + kLinks) ==
        "c.toml:2: [[device]] has no flops");
  CHECK(error_of(name + kDevice + "speed = 3\n" + kNodes + kLinks) ==
        "c.toml:7: \"speed\" is no key of [[device]]");
  CHECK(error_of(name + kDevice + "[[nodes]]\ncount = 0\ndevices = 2\ndevice = \"gpu\"\n" +
                 kLinks) == "c.toml:8: count of [[nodes]] is 0, expected 1 to 1048576");
  CHECK(error_of(name + kDevice + "[[nodes]]\ncount = 1\ndevices = 2\ndevice = \"gpx\"\n" +
                 kLinks) == "c.toml:7: no [[device]] is called gpx; did you mean gpu?");
  CHECK(error_of(name + kDevice + kNodes + "[[nodes]]\ncount = 1\ndevices = 4\ndevice = \"gpu\"\n" +
                 kLinks) ==
        "c.toml:11: nodes of 4 devices after nodes of 2, expected as many on each");
  CHECK(error_of(name + kDevice + kNodes + "[links.inside]\nbytes_per_s = 1\n") ==
        "c.toml:11: [links] has no between");
  CHECK(error_of(name + "device = 3\n" + kNodes + kLinks) ==
        "c.toml:2: device is an integer, expected tables: [[device]]");
  CHECK(error_of("name = \n").starts_with("c.toml:1: "));
  CHECK(usage_error([] {
          read_cluster_file("/nowhere/c.toml");
        }).starts_with("--cluster: cannot read /nowhere/c.toml"));
}
