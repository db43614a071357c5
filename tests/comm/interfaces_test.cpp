#include "comm/interfaces.h"

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

const std::vector<Interface> kAll = {{"lo", "127.0.0.1", true},
                                     {"docker0", "172.17.0.1", false},
                                     {"eth1", "fd00::5", false},
                                     {"eth0", "10.0.0.5", false},
                                     {"lo", "::1", true}};

std::vector<std::string> names(const std::vector<Interface>& interfaces) {
  std::vector<std::string> found;
  for (const Interface& one : interfaces) found.push_back(describe(one));
  return found;
}

std::string usage(const std::string& wanted, bool several_hosts) {
  try {
    usable_interfaces(kAll, wanted, several_hosts);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.text();
  }
  return "";
}

}  // namespace

TEST_CASE("several hosts never meet on loopback; bridges come last") {
  CHECK(names(usable_interfaces(kAll, "", true)) ==
        std::vector<std::string>{"eth0 (10.0.0.5)", "eth1 (fd00::5)", "docker0 (172.17.0.1)"});
}

TEST_CASE("one host meets on loopback") {
  CHECK(names(usable_interfaces(kAll, "", false)) ==
        std::vector<std::string>{"lo (127.0.0.1)", "lo (::1)", "eth0 (10.0.0.5)", "eth1 (fd00::5)",
                                 "docker0 (172.17.0.1)"});
}

TEST_CASE("a named interface wins, and is told when it cannot be used") {
  CHECK(names(usable_interfaces(kAll, "docker0", true)) ==
        std::vector<std::string>{"docker0 (172.17.0.1)"});
  CHECK(names(usable_interfaces(kAll, "eth0", false)) ==
        std::vector<std::string>{"eth0 (10.0.0.5)"});
  CHECK(usage("eth7", true).starts_with("--iface eth7: no interface of that name is up"));
  CHECK(usage("lo", true) ==
        "--iface lo: loopback reaches no other host, and several take part; expected "
        "docker0 (172.17.0.1), eth1 (fd00::5), eth0 (10.0.0.5)");
  CHECK(usage("lo", false).empty());
}

TEST_CASE("a host without a network cannot take part in several") {
  CHECK_THROWS_AS(usable_interfaces({kAll[0]}, "", true), Error);
}

TEST_CASE("this host's loopback is found") {
  CHECK(usable_interfaces(list_interfaces(), "lo", false).front().loopback);
}

}  // namespace convoy
