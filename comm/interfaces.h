// Which network interface a process is to be reached at. Names of hosts are not looked up: a hosts
// file often maps the own name to a loopback address.
#pragma once

#include <string>
#include <vector>

namespace convoy {

/// An interface that is up, with one of its addresses.
struct Interface {
  std::string name;     ///< "eth0"
  std::string address;  ///< "10.0.0.1", "fd00::1"
  bool loopback = false;
};

/// Those of this host, from the system.
std::vector<Interface> list_interfaces();

/// The addresses to try, best first: those of interface `wanted`, else of all, loopback first; over
/// `several_hosts` without loopback. Bridges of containers and virtual machines come last. `usage`
/// where `wanted` is not there, or is loopback on several hosts; `communication` where nothing is
/// left.
std::vector<Interface> usable_interfaces(const std::vector<Interface>& all,
                                         const std::string& wanted, bool several_hosts);

/// "eth0 (10.0.0.1)".
std::string describe(const Interface& interface);

}  // namespace convoy
